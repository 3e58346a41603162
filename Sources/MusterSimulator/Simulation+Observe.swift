import MusterBase
import MusterCore
import MusterCrypto
import MusterMesh
import MusterWire

/// What nodes tell, held against what may never be.
extension Simulation {
  mutating func observe(_ event: NodeEvent, of place: Int) {
    let label = nodes[place].label
    if case .linkUp = event { totals.linksMade += 1 }
    note(label, text(of: event))
    if let fault = nodes[place].events.saw(event) { violated("events", "\(label): \(fault)") }
    guard case .channel(let event) = event else { return }
    switch event {
    case .message(let message): observe(message, at: place)
    case .memberLeft(let member, .crashed): checkEjection(of: member, at: place)
    case .callStarted(let call), .callHandedOver(let call): observe(call.info, at: place)
    case .callJoined(let call, _), .callLeft(let call, _, _):
      if let fault = calls.seen(call.info, at: place) { violated("calls", "\(label): \(fault)") }
    case .refused(let reason):
      totals.refusals += 1
      nodes[place].refusals.append(reason)
      trace.mark(.refused(reason), at: place, now)
    case .keyChanged(let epoch): trace.mark(.key(epoch), at: place, now)
    case .memberJoined, .memberUpdated, .memberLeft, .callEnded, .ownRoleChanged: break
    }
  }

  private mutating func observe(_ message: TextMessage, at place: Int) {
    let (node, id) = (nodes[place].node, channel.id)
    let fault = messages.shown(
      message, at: nodes[place].reader, own: nodes[place].identity.id, at: now,
      mayWrite: { node?.may(.sendText, $0, in: id) ?? true })
    if let fault { violated("messages", "\(nodes[place].label): \(fault)") }
    if message.from != nodes[place].identity.id {
      checkRole(.sendText, of: message.from, at: place, "shows text of")
      trace.mark(.shown, at: place, now)
    }
  }

  private mutating func observe(_ call: CallInfo, at place: Int) {
    if let fault = calls.seen(call, at: place) {
      violated("calls", "\(nodes[place].label): \(fault)")
    }
    checkRole(
      call.term == 1 ? .startCall : .handOver, of: call.initiator, at: place, "sees a call of")
  }

  /// Whatever takes effect at a node must be within the role of whoever it came from.
  mutating func checkRole(
    _ capability: Capability, of member: NodeID, at place: Int, _ what: String
  ) {
    guard member != nodes[place].identity.id else { return }
    let isAllowed = roles.may(
      capability, member, at: WallTime.seconds(now),
      strictly: settling.settledAt != nil && settling.group.contains(place))
    if !isAllowed {
      violated("roles", "\(nodes[place].label) \(what) \(label(member)), who may not")
    }
  }

  /// Nobody who is there, and can be heard, is taken for gone.
  private mutating func checkEjection(of member: Member, at place: Int) {
    guard let other = present(member.id), isUndisturbed([place, other]), nodes[other].isPresent,
      nodes[other].node?.bootID == member.bootID,
      roles.role(of: member.id, at: WallTime.seconds(now)) > .none,
      roles.role(of: nodes[place].identity.id, at: WallTime.seconds(now)) > .none
    else { return }
    violated("ejection", "\(nodes[place].label) takes \(nodes[other].label) for crashed")
  }

  /// Whether nothing happens, or has happened lately, that could rightly look like a crash.
  private func isUndisturbed(_ places: [Int]) -> Bool {
    let isGentle = plan.isGentle && worstLoss <= 0.1 && scenario.removals == 0
    return (isGentle && scenario.expiring == nil)
      || (settling.settledAt != nil && places.allSatisfy(settling.group.contains))
  }
}
