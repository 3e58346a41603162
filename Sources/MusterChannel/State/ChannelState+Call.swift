import MusterBase
import MusterCrypto
import MusterWire

/// This node's view of the channel's call, and its own part in it.
extension ChannelState {
  /// Whether this node has left the channel; the host still keeps its links for a moment.
  public var isLeaving: Bool { ownPresence.flags.contains(.left) }

  mutating func recomputeCall(at now: Instant, _ out: inout [Output]) {
    if let mine = ownPresence.call {
      let removal = removal(of: identity.id, from: mine.id)
      // The others learn first why this node leaves: its own presence may overtake the moderation
      // on its way from the author.
      if let removal { gossip.passOn(removal) }
      if removal != nil || isOver(mine.id) || !isSelfAllowed(.joinCall) { ownPresence.call = nil }
    }
    var active = activeCall
    if let mine = ownPresence.call, active?.info.id != mine.id {
      // Seniority counts from the merge: those who were in this call come before a newcomer.
      ownPresence.call = active.flatMap { active in
        removal(of: identity.id, from: active.info.id) == nil
          ? Participation(id: active.info.id, joined: gossip.document.lamport) : nil
      }
      active = activeCall
    }
    view(active, gone: nil, &out)
    var watch = succession
    let verdict = watch.update(
      active, own: identity.id, isInCall: ownPresence.call != nil,
      endsWithInitiator: settings.callEndsWithInitiator,
      isHandedOver: active.map { presence(of: $0.info.initiator)?.isHandOver ?? false } ?? false,
      mayHandOver: { may(.handOver, $0) }, at: now)
    succession = watch
    switch verdict {
    case .none: break
    case .giveUp:
      ownPresence.call = nil
      changes.call = true
    case .takeOver:
      guard let info = active?.info else { break }
      if !signAndBroadcast(.claim(CallClaim(continuing: info)), at: now, &out) {
        ownPresence.call = nil
        out.append(.event(.notKept(.call)))
      }
      changes.call = true
    }
    attest(active, at: now, &out)
  }

  /// Publishes that this node is in the call together with others, which keeps a newcomer's call
  /// from displacing it.
  private mutating func attest(_ active: ActiveCall?, at now: Instant, _ out: inout [Output]) {
    var published: CallJoining?
    if case .joining(let newest)? = gossip.document.newest(.joining, of: identity.id)?
      .entry.body
    {
      published = newest
    }
    let mine = ownPresence.call.flatMap { mine in
      active.flatMap { $0.info.id == mine.id ? $0 : nil }
    }
    let joining = joiningSchedule.update(
      mine, own: identity.id, published: published, at: now)
    if let joining { signAndBroadcast(.joining(joining), at: now, &out) }
  }

  mutating func view(
    _ active: ActiveCall?, gone: (member: NodeID, reason: LeaveReason)?, _ out: inout [Output]
  ) {
    if isInitialSync, call == nil, ownPresence.call == nil { return }
    let former = call?.info.id
    let events = CallView.events(
      from: call, to: active,
      ender: { CallLedger.ender(of: $0, callEntries, may: mayIn) },
      hasMerged: call.map { old in old.participants.contains { hasMoved($0, from: old) } } ?? false,
      isLeft: call.map { active == nil && isLeft($0.info) } ?? false,
      precedes: policy.precedes,
      reason: { member in
        if let former, remover(of: member, from: former) != nil { return .removed }
        if gone?.member == member { return gone?.reason ?? .left }
        if member == identity.id { return hasLostMembership ? .removed : .left }
        if let call, hasMoved(member, from: call) { return .merged }
        return refusal(of: member) == nil ? .left : .removed
      })
    call = active
    out += events.map { .event($0) }
  }

  /// Whether a participant of `old` is now in a call that stays instead, into which `old` merges. A
  /// call without a known claim counts as such: the first participant of a later call publishes its
  /// claim before a presence names that call.
  private func hasMoved(_ member: NodeID, from old: ActiveCall) -> Bool {
    guard let other = participation(of: member)?.id, other != old.info.id, !isOver(other) else {
      return false
    }
    let info = CallLedger.info(
      of: other, callEntries, may: mayIn)
    return info.map { !old.isLed || policy.precedes($0, old.info) } ?? true
  }

  /// Whether a call that this node does not see waits for its initiator.
  private func isLeft(_ call: CallInfo) -> Bool {
    self.call(seenBy: call.initiator)?.info.id == call.id
  }

  /// What the presence of a reachable member says about the call that it is in.
  private func participation(of member: NodeID) -> Participation? {
    guard roster.index(of: member) != nil else { return nil }
    return presence(of: member)?.call
  }

  private func presence(of member: NodeID) -> Presence? {
    guard case .presence(let newest)? = gossip.document.newest(.presence, of: member)?.entry.body
    else { return nil }
    return newest
  }

  /// The participant that would lead the call if this node, its initiator, left it without ending
  /// it; nil if none may, or if this node does not lead it.
  public var successor: NodeID? {
    guard let call, isInCall, call.info.initiator == identity.id, call.info.term < .max,
      !settings.callEndsWithInitiator
    else { return nil }
    return call.byPresence.first { $0 != identity.id && may(.handOver, $0) }
  }

  /// The claim of the active call's initiator; nil without a call. A new neighbour receives this
  /// claim before the presences that name the call, so that its first call event names the right
  /// initiator.
  var leadingClaim: SignedEntry? {
    guard let call else { return nil }
    return CallLedger.leadingClaim(
      of: call.info.id, callEntries, may: mayIn)
  }

  /// The member that keeps `member` out of a call by having removed it, or another of the same
  /// invite; nil if it may be in the call.
  public func remover(of member: NodeID, from call: CallID) -> NodeID? {
    removal(of: member, from: call)?.entry.author
  }

  private func removal(of member: NodeID, from call: CallID) -> SignedEntry? {
    let entries = callEntries
    guard !entries.moderations.isEmpty,
      let info = CallLedger.info(of: call, entries, may: mayIn)
    else { return nil }
    let there = member == identity.id ? ownPresence.call : participation(of: member)
    let joined = there.flatMap { $0.id == call ? $0.joined : nil }
    return entries.removal(of: member, joined: joined, from: info)
  }

  private func isOver(_ id: CallID) -> Bool {
    CallLedger.isOver(id, callEntries, may: mayIn)
  }

  var activeCall: ActiveCall? { call(seenBy: identity.id) }

  private func call(seenBy viewer: NodeID) -> ActiveCall? {
    var present: [(member: NodeID, participation: Participation)] = []
    for id in roster.keys {
      if let participation = participation(of: id) { present.append((id, participation)) }
    }
    if let mine = ownPresence.call { present.append((identity.id, mine)) }
    return CallLedger.active(
      callEntries, present: present, viewer: viewer,
      rules: CallRules(endsWithInitiator: settings.callEndsWithInitiator, policy), may: mayIn)
  }

  private var mayIn: (Capability, NodeID) -> Bool { { may($0, $1) } }
}

extension Presence {
  /// Whether the author has left its call to others.
  fileprivate var isHandOver: Bool { call == nil && flags.contains(.handsOver) }
}
