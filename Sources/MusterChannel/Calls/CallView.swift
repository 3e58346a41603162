import MusterBase

/// What changed between two views of a channel's call.
public enum CallView {
  /// The events between two views; `gone` is the member whose disappearance brought the change.
  public static func events(
    from old: ActiveCall?, to new: ActiveCall?, isOver: (CallID) -> Bool,
    gone: (member: NodeID, reason: LeaveReason)?
  ) -> [ChannelEvent] {
    guard let old else { return new.map { [.callStarted($0)] } ?? [] }
    if let new, new.info.id == old.info.id { return changes(from: old, to: new, gone: gone) }
    let reason = endReason(of: old.info, replacedBy: new?.info, isOver: isOver)
    var events: [ChannelEvent] = []
    if reason == CallEndReason.empty {
      let nobody = ActiveCall(info: old.info, participants: [], byPresence: [])
      events = changes(from: old, to: nobody, gone: gone)
    }
    events.append(.callEnded(old.info, reason: reason))
    if let new { events.append(.callStarted(new)) }
    return events
  }

  private static func endReason(
    of old: CallInfo, replacedBy new: CallInfo?, isOver: (CallID) -> Bool
  ) -> String {
    if isOver(old.id) { return CallEndReason.ended }
    if let new, CallInfo.precedes(new, old) { return CallEndReason.merged }
    return CallEndReason.empty
  }

  /// Leaves, then a new initiator, then joins: one event each with the call as it is after it.
  private static func changes(
    from old: ActiveCall, to new: ActiveCall, gone: (member: NodeID, reason: LeaveReason)?
  ) -> [ChannelEvent] {
    var events: [ChannelEvent] = []
    var call = old
    for member in old.participants where !new.participants.contains(member) {
      call.participants.removeAll { $0 == member }
      call.byPresence.removeAll { $0 == member }
      let reason = gone?.member == member ? gone?.reason ?? .left : .left
      events.append(.callLeft(call, member, reason))
    }
    call.info = new.info
    call.byPresence = new.byPresence.filter { call.participants.contains($0) }
    if new.info.initiator != old.info.initiator { events.append(.callHandedOver(call)) }
    for member in new.participants where !old.participants.contains(member) {
      call.participants = new.participants.filter {
        call.participants.contains($0) || $0 == member
      }
      call.byPresence = new.byPresence.filter { call.participants.contains($0) }
      events.append(.callJoined(call, member))
    }
    return events
  }
}
