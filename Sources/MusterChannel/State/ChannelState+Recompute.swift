import MusterBase
import MusterCrypto
import MusterWire

/// The derivation of rights, roster and call from the document and the links, and this node's
/// actions that follow from them.
extension ChannelState {
  /// Applies `change`, then recomputes all derived state that depends on it.
  mutating func commit(
    at now: Instant, _ change: (inout ChannelState, inout [Output]) -> Void
  ) -> [Output] {
    lastInputAt = now
    var out: [Output] = []
    // A role has no effect from the second at which it expires. The expiry is applied first:
    // otherwise the change could be based on a call that its initiator may no longer lead.
    if let expiryAt, expiryAt <= now {
      changes.rights = true
      recomputeAll(at: now, &out)
    }
    let before = ownPresence
    change(&self, &out)
    if ownPresence.call != before.call { changes.call = true }
    recomputeAll(at: now, &out)
    publishOwnState(at: now, &out)
    return out
  }

  /// Recomputes until nothing changes any more. This terminates: a waiting entry is admitted once,
  /// a call is left or taken over once, and each entry supersedes this node's presence at most
  /// once. `checkInvariants` reports a recomputation that did not finish within the limit.
  private mutating func recomputeAll(at now: Instant, _ out: inout [Output]) {
    for _ in 0..<Self.roundLimit {
      if changes.isEmpty { return }
      recompute(at: now, &out)
    }
  }

  /// The maximum number of rounds, which bounds the cost of a hostile document; honest documents
  /// have needed at most four (10,000 seeds of the simulator).
  private static let roundLimit = 8

  private mutating func recompute(at now: Instant, _ out: inout [Output]) {
    let pending = changes
    recomputations &+= 1
    changes = Changes(rights: false, reachability: false, call: false)
    if pending.ownIsOvertaken { signPresence(at: now, &out) }
    let isRosterAffected = pending.rights && recomputeRights(at: now, &out)
    if hasLostMembership, ownPresence.call != nil {
      // It leaves the call before it loses sight of the members.
      ownPresence.call = nil
      view(activeCall, gone: nil, &out)
    }
    if isRosterAffected || pending.reachability { recomputeRoster(&out) }
    recomputeCall(at: now, &out)
  }

  // MARK: Rights

  /// Recomputes the rights; returns whether the roster may depend on what has changed.
  private mutating func recomputeRights(at now: Instant, _ out: inout [Output]) -> Bool {
    let epoch = rights.currentEpoch
    let changed = rights.update(from: gossip.document)
    let role = rights.role(of: identity.id, at: wallSeconds)
    if role != ownRole {
      ownRole = role
      out.append(.event(.ownRoleChanged(role)))
    }
    if rights.currentEpoch != epoch {
      out.append(.event(.keyChanged(epoch: rights.currentEpoch)))
    }
    settle(changed, &out)
    let rights = rights
    apply(gossip.reconsider(at: now) { rights.admits($0) }, at: now, &out)
    let held = awaitingGrant
    awaitingGrant = []
    show(held, &out)
    let expiry =
      changed.map { rights.nextExpiry(of: $0, after: wallSeconds) }
      ?? rights.nextExpiry(after: wallSeconds)
    let next = [expiry, announceEnd(&out)].compactMap { $0 }.min().map { boot(atWallSecond: $0) }
    // The others expire when they did. One that expires no longer costs one evaluation in vain.
    expiryAt = [changed == nil ? nil : expiryAt, next].compactMap { $0 }.min()
    noteUses(at: now)
    noteExpiredRoles(changed, at: now)
    return changed.map { $0.contains(where: isOfRoster) } ?? true
  }

  /// Whether the roster may depend on the rights of a key.
  private func isOfRoster(_ key: NodeID) -> Bool {
    key == identity.id || gossip.document.newest(.presence, of: key) != nil
  }

  /// Announces that this node's role ends soon, which costs it the call; returns the time of the
  /// next announcement, in seconds since 1970.
  private mutating func announceEnd(_ out: inout [Output]) -> UInt64? {
    guard let end = rights.end(of: identity.id, at: wallSeconds) else {
      announcedEnd = nil
      return nil
    }
    let left = end.at - wallSeconds
    if let lead = Self.endLeads.last(where: { left <= $0 }) {
      let isKnown = announcedEnd.map { $0.at == end.at && $0.lead <= lead } ?? false
      announcedEnd = (end.at, lead)
      if !isKnown {
        out.append(.event(.ownRoleEnds(seconds: left, isProvisional: end.isProvisional)))
      }
    }
    return Self.endLeads.first { $0 < left }.map { end.at - $0 }
  }

  /// The times before the end of its role at which a member hears of it, in seconds: one to ask for
  /// more, and one to say goodbye.
  private static let endLeads: [UInt64] = [300, 30]

  /// Removes the entries whose authors have lost the right to them from the document.
  private mutating func settle(_ changed: [NodeID]?, _ out: inout [Output]) {
    let before = gossip.document.revision
    forget(settleDocument(changed: changed), &out)
    if gossip.document.revision != before { changes = Changes() }
  }

  /// The boot time at which the wall clock reaches `seconds`, which must be in the future; at most
  /// a day from now.
  private func boot(atWallSecond seconds: UInt64) -> Instant {
    // Limited to a day, so that no wall clock, however wrong, causes an overflow.
    let ahead = Duration.seconds(Int64(clamping: min(seconds - wallSeconds, 86_400)))
    // Exact to the nanosecond: rights change at the full second, and nothing else triggers their
    // evaluation.
    let passed =
      Duration.milliseconds(Int64(clamping: wallMilliseconds % 1000))
      + .nanoseconds(lastInputAt.nanoseconds % 1_000_000)
    return lastInputAt + (ahead - passed)
  }

  // MARK: Roster

  private mutating func recomputeRoster(_ out: inout [Output]) {
    let present = presentMembers()
    var departed: [Member] = []
    for (id, member) in roster where !present.contains(where: { $0.id == id }) {
      departed.append(member)
    }
    for member in departed { announceLeave(to: member, reason(of: member), &out) }
    for member in present { welcome(member, &out) }
    // A member that is still reachable has not left, although its link has ended.
    for id in linkEnds.keys where roster.index(of: id) != nil { linkEnds[id] = nil }
  }

  /// The reachable members that have a role and a presence of the reachable run, sorted by id; none
  /// once this node, to its knowledge, is no member itself.
  func presentMembers() -> [Member] {
    guard !hasLostMembership else { return [] }
    var reports: [(member: NodeID, heard: [UInt64])] = []
    var presences = PeerTable<NodeID, Presence>()
    for entry in gossip.document.all(.presence) {
      guard case .presence(let presence) = entry.entry.body, !presence.flags.contains(.left),
        entry.entry.author != identity.id
      else { continue }
      presences[entry.entry.author] = presence
    }
    for entry in gossip.document.all(.neighbourReport) {
      let author = entry.entry.author
      guard case .neighbourReport(let heard) = entry.entry.body,
        presences[author]?.bootID == heard.bootID
      else { continue }
      reports.append((author, heard.heard))
    }
    let reachable = Reachability.reachable(
      from: identity.id, links: neighbours.keys, reports: reports)
    return reachable.compactMap { id in
      guard let presence = presences[id] else { return nil }
      if let neighbour = neighbours[id], neighbour.bootID != presence.bootID { return nil }
      let role = rights.role(of: id, at: wallSeconds)
      guard role > .none, !gossip.document.quarantined.contains(id) else { return nil }
      return Member(presence, of: id, role: role, settings: settings)
    }
  }

  private mutating func welcome(_ member: Member, _ out: inout [Output]) {
    let before = roster[member.id]
    roster[member.id] = member
    defer { noteRun(member.bootID, of: member.id, &out) }
    guard let before else {
      out.append(.event(.memberJoined(member)))
      return
    }
    guard before != member else { return }
    if before.bootID != member.bootID {
      roster[member.id] = nil
      announceLeave(to: before, .replaced, &out)
      roster[member.id] = member
      out.append(.event(.memberJoined(member)))
    } else {
      out.append(.event(.memberUpdated(member)))
    }
  }

  /// Reports that a member has left: first the call, then the channel.
  private mutating func announceLeave(
    to member: Member, _ reason: LeaveReason, _ out: inout [Output]
  ) {
    roster[member.id] = nil
    view(activeCall, gone: (member.id, reason), &out)
    out.append(.event(.memberLeft(member, reason)))
  }

  private func reason(of member: Member) -> LeaveReason {
    // After its own removal, this node loses contact with all members; their departures result from
    // that removal.
    if refusal(of: member.id) != nil || hasLostMembership { return .removed }
    if let entry = gossip.document.newest(.presence, of: member.id),
      case .presence(let presence) = entry.entry.body, presence.flags.contains(.left)
    {
      return .left
    }
    if let neighbour = neighbours[member.id], neighbour.bootID != member.bootID {
      return .replaced
    }
    return linkEnds[member.id] ?? .crashed
  }

  /// Whether this node, to its knowledge, has lost its membership.
  public var hasLostMembership: Bool {
    switch refusal(of: identity.id) {
    case .removed, .expired, .equivocated, .inviteUsedUp: true
    case .noGrant, .inviteOutdated, .unknown, nil: false
    }
  }

  // MARK: Own presence

  /// Publishes changes of this node's state: at once, except for the speaking flag, which is
  /// rate-limited.
  private mutating func publishOwnState(at now: Instant, _ out: inout [Output]) {
    guard let ownEntry, case .presence(let published) = ownEntry.entry.body else { return }
    if let ownReport, isDisplaced(ownReport) {
      reportDueAt = reportDueAt ?? now + Self.displacedInterval
    }
    let own = presenceToPublish
    let isDisplaced = isDisplaced(ownEntry)
    guard published != own || isDisplaced else {
      presenceDueAt = nil
      return
    }
    if published == own, let sentAt = presenceSentAt, now - sentAt < Self.displacedInterval {
      presenceDueAt = sentAt + Self.displacedInterval
      return
    }
    // If the new presence arrived before the end of the call, the initiator would seem to have left
    // a call that continues.
    guard !pending.contains(where: { $0.subject == .callEnd }) else {
      presenceDueAt = nil
      return
    }
    var quiet = own
    if published.flags.contains(.speaking) {
      quiet.flags.insert(.speaking)
    } else {
      quiet.flags.remove(.speaking)
    }
    if quiet == published, !isDisplaced, let sentAt = presenceSentAt,
      now - sentAt < Self.speakingInterval
    {
      presenceDueAt = sentAt + Self.speakingInterval
      return
    }
    signPresence(at: now, &out)
    recomputeAll(at: now, &out)
  }
}
