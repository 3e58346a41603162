import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterWire

/// Checks of the events that nodes report.
extension Simulation {
  mutating func observe(_ event: NodeEvent, of index: Int) {
    let label = nodes[index].label
    if case .linkUp = event { totals.linksMade += 1 }
    note(label, text(of: event))
    if let fault = nodes[index].events.saw(event) { violated("events", "\(label): \(fault)") }
    if case .mediaHeld = event { turnOnSoon(index) }
    if case .callRefused(_, let joinsNext) = event { entries.refused(waits: joinsNext, at: index) }
    if case .channel(.moderated(let moderation, _)) = event,
      moderation.member == nodes[index].identity.id
    {
      turnOnSoon(index)
    }
    guard case .channel(let event) = event else { return }
    switch event {
    case .message: break  // Collected by `perform`, then checked after the write.
    case .commitFailed: totals.failedCommits += 1
    case .memberLeft(let member, .crashed): checkEjection(of: member, at: index)
    case .callStarted(let call), .callHandedOver(let call): observe(call.info, at: index)
    case .callJoined(let call, _), .callLeft(let call, _, _):
      if let fault = calls.seen(call.info, at: index) { violated("calls", "\(label): \(fault)") }
      if call.participants.count == 1 { standings.wasAlone(at: index, now) }
    case .refused(let reason):
      totals.refusals += 1
      nodes[index].refusals.append(reason)
      trace.mark(.refused(reason), at: index, now)
    case .keyChanged(let epoch): trace.mark(.key(epoch), at: index, now)
    case .callEnded(let call, let reason): observe(call, ending: reason, at: index)
    case .memberJoined, .memberUpdated, .memberLeft, .ownRoleChanged, .ownRoleEnds, .notKept,
      .moderated, .runsTwice:
      break
    }
  }

  /// Checks a message that a node shows to its user. `shownAt` is the time at which the node
  /// emitted the message, and `writers` are the authors that the node believed at that time were
  /// allowed to write; nil for all authors.
  mutating func observe(
    _ message: TextMessage, at index: Int, shownAt: Instant, writers: [NodeID]?
  ) {
    let fault = messages.shown(
      message, at: nodes[index].reader, own: nodes[index].identity.id, at: shownAt,
      mayWrite: { writers?.contains($0) ?? true })
    if let fault { violated("messages", "\(nodes[index].label): \(fault)") }
    if message.from != nodes[index].identity.id {
      checkRole(.sendText, of: message.from, at: index, "shows text of", since: shownAt)
      trace.mark(.shown, at: index, now)
    }
  }

  private mutating func observe(_ call: CallInfo, at index: Int) {
    if let fault = calls.seen(call, at: index) {
      violated("calls", "\(nodes[index].label): \(fault)")
    }
    checkRole(
      call.term == 1 ? .startCall : .handOver, of: call.initiator, at: index, "sees a call of")
  }

  /// Checks that a participant is not moved out of a call that people are in, and that one of them
  /// may lead.
  private mutating func observe(_ old: CallInfo, ending reason: String, at index: Int) {
    guard reason == CallEndReason.merged, standings.isInside(old.id, at: index),
      let process = nodes[index].process, process.node.isInCall(channel.id),
      let new = process.node.call(in: channel.id)?.info, new.id != old.id
    else { return }
    let fault = standings.moved(
      from: old, to: new, isLed: isLed(old, at: index),
      known: process.node.entries(of: channel.id),
      may: { process.node.may($0, $1, in: channel.id) })
    if let fault { violated("standing", "\(nodes[index].label) \(fault)") }
  }

  /// Whether this node, which has been in the call, or a member that it knows to be in the call may
  /// lead it.
  private func isLed(_ call: CallInfo, at index: Int) -> Bool {
    guard let process = nodes[index].process else { return false }
    let others = process.node.members(of: channel.id).filter { $0.call == call.id }.map(\.id)
    return (others + [process.node.id]).contains { member in
      member == call.initiator
        || !scenario.settings.callEndsWithInitiator
          && process.node.may(.handOver, member, in: channel.id)
    }
  }

  /// Notes which call a node is in after an input.
  mutating func observeCall(of index: Int) {
    guard let process = nodes[index].process else { return }
    let call = process.node.call(in: channel.id)
    let others = call?.participants.filter { $0 != process.node.id } ?? []
    let isIn = others.count != call?.participants.count
    standings.isIn(isIn ? call?.info.id : nil, withOthers: !others.isEmpty, at: index, now)
    checkEntry(of: index)
  }

  /// Checks that a node is in the call that it should be in, and in no other.
  mutating func checkEntry(of index: Int) {
    // A node that ignores its own role also enters calls that it may not, and finds no way in.
    guard let process = nodes[index].process, nodes[index].isInChannel, !nodes[index].isLawless
    else { return }
    let call = process.node.call(in: channel.id)?.info.id
    let isIn = process.node.isInCall(channel.id)
    let mayEnter = process.node.refusalToEnterCall(in: channel.id) == nil
    let fault = entries.isIn(
      isIn ? call : nil, mayEnter: mayEnter ? call : nil, at: index, now)
    if let fault { violated("entry", "\(nodes[index].label) \(fault)") }
  }

  /// Checks that a member's role permits an action of the member that takes effect at another node.
  /// `decidedAt` is the time at which that node let it take effect; nil for now.
  mutating func checkRole(
    _ capability: Capability, of member: NodeID, at index: Int, _ what: String,
    since decidedAt: Instant? = nil
  ) {
    guard member != nodes[index].identity.id else { return }
    let decidedAt = decidedAt ?? now
    let hadSettled = settling.settledAt.map { $0 <= decidedAt } ?? false
    let isAllowed = roles.may(
      capability, member, at: WallTime.seconds(decidedAt),
      strictly: hadSettled && settling.group.contains(index))
    if !isAllowed {
      violated("roles", "\(nodes[index].label) \(what) \(label(member)), who may not")
    }
  }

  /// Checks that a member reported as crashed was not running with a working path.
  private mutating func checkEjection(of member: Member, at index: Int) {
    guard let other = present(member.id), isUndisturbed([index, other]), nodes[other].isPresent,
      nodes[other].process?.node.bootID == member.bootID,
      roles.role(of: member.id, at: WallTime.seconds(now)) > .none,
      roles.role(of: nodes[index].identity.id, at: WallTime.seconds(now)) > .none
    else { return }
    violated("ejection", "\(nodes[index].label) takes \(nodes[other].label) for crashed")
  }

  /// True if no current or recent fault could make one of these nodes look crashed.
  private func isUndisturbed(_ indices: [Int]) -> Bool {
    let isGentle = plan.isGentle && worstLoss <= 0.1 && scenario.removals == 0
    return (isGentle && scenario.expiring == nil)
      || (settling.settledAt != nil && indices.allSatisfy(settling.group.contains))
  }
}

extension ChannelEvent {
  /// Whether the event is about the channel's call.
  var concernsCall: Bool {
    switch self {
    case .callStarted, .callJoined, .callLeft, .callHandedOver, .callEnded: true
    default: false
    }
  }
}
