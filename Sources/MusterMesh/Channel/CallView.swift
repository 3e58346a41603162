import MusterBase
import MusterWire

/// Works out the one call of a channel from what its members claim, and what changed about it.
///
/// Nothing is accumulated: the same claims give the same call on every node, in whatever order they
/// arrived. Terms and hand-over, once there are, become part of the order of claims.
enum CallView {
  /// One member and the call that it says it is in.
  struct Claim: Equatable {
    var member: NodeID
    var call: CallInfo
  }

  /// The earliest call that is not over, with everyone who is in it; `claims` are sorted by member.
  static func active(among claims: [Claim], ended: EndedCalls) -> ActiveCall? {
    let alive = claims.filter { !ended.contains($0.call) }
    guard let info = alive.map(\.call).min(by: precedes) else { return nil }
    return ActiveCall(
      info: info, participants: alive.filter { $0.call == info }.map(\.member))
  }

  /// Of two calls the one that started earlier stays; ids, then initiators, settle ties.
  static func precedes(_ a: CallInfo, _ b: CallInfo) -> Bool {
    if a.startedAt != b.startedAt { return a.startedAt < b.startedAt }
    if a.id != b.id { return a.id < b.id }
    return a.initiator < b.initiator
  }

  /// The events between two views; `gone` is the member whose disappearance brought the change.
  static func events(
    from old: ActiveCall?, to new: ActiveCall?, ended: EndedCalls,
    gone: (member: NodeID, reason: LeaveReason)?
  ) -> [ChannelEvent] {
    guard let old else { return new.map { [.callStarted($0)] } ?? [] }
    if let new, new.info == old.info { return changes(from: old, to: new, gone: gone) }
    let reason = endReason(of: old.info, replacedBy: new?.info, ended: ended)
    var events: [ChannelEvent] = []
    if reason == CallEndReason.empty {
      let nobody = ActiveCall(info: old.info, participants: [])
      events = changes(from: old, to: nobody, gone: gone)
    }
    events.append(.callEnded(old.info, reason: reason))
    if let new { events.append(.callStarted(new)) }
    return events
  }

  private static func endReason(
    of old: CallInfo, replacedBy new: CallInfo?, ended: EndedCalls
  ) -> String {
    if ended.contains(old) { return CallEndReason.ended }
    if let new, precedes(new, old) { return CallEndReason.merged }
    return CallEndReason.empty
  }

  /// Leaves, then joins, one event each with the participants as they are after it.
  private static func changes(
    from old: ActiveCall, to new: ActiveCall, gone: (member: NodeID, reason: LeaveReason)?
  ) -> [ChannelEvent] {
    var events: [ChannelEvent] = []
    var call = old
    for member in old.participants where !new.participants.contains(member) {
      call.participants.removeAll { $0 == member }
      events.append(.callLeft(call, member, gone?.member == member ? gone?.reason ?? .left : .left))
    }
    for member in new.participants where !old.participants.contains(member) {
      call.participants.append(member)
      call.participants.sort()
      events.append(.callJoined(call, member))
    }
    return events
  }
}
