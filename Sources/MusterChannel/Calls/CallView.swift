import MusterBase

/// Derives events from the difference between two states of a channel's call.
public enum CallView {
  /// The events that lead from one state of the call to another.
  ///
  /// - Parameters:
  ///   - ender: the initiator whose end covers all claims to a call; nil if none does.
  ///   - hasMerged: whether participants of `old` have moved to a call that stays instead.
  ///   - isLeft: whether participants of `old` are still in it, but nobody who may lead it, so that
  ///     it takes no newcomers.
  ///   - precedes: whether the first of two concurrent calls stays.
  ///   - reason: why a participant of `old` is no longer in the call.
  public static func events(
    from old: ActiveCall?, to new: ActiveCall?, ender: (CallID) -> NodeID?, hasMerged: Bool,
    isLeft: Bool = false,
    precedes: (CallInfo, CallInfo) -> Bool = CallInfo.precedes,
    reason leaveReason: (NodeID) -> LeaveReason
  ) -> [ChannelEvent] {
    guard let old else { return new.map { [.callStarted($0)] } ?? [] }
    if let new, new.info.id == old.info.id {
      return changes(from: old, to: new, reason: leaveReason)
    }
    let ender = ender(old.info.id)
    let reason =
      if ender != nil {
        CallEndReason.ended
      } else if hasMerged || new.map({ !old.isLed || precedes($0.info, old.info) }) ?? false {
        CallEndReason.merged
      } else if isLeft {
        CallEndReason.leaderless
      } else {
        CallEndReason.empty
      }
    var events: [ChannelEvent] = []
    if reason == CallEndReason.empty {
      let nobody = ActiveCall(info: old.info, participants: [], byPresence: [])
      events = changes(from: old, to: nobody, reason: leaveReason)
    }
    var info = old.info
    // An end may come together with the claim of its author.
    if let ender { info.initiator = ender }
    events.append(.callEnded(info, reason: reason))
    if let new { events.append(.callStarted(new)) }
    return events
  }

  /// Reports leaves, then a new initiator, then joins; each event carries the call after that
  /// change.
  private static func changes(
    from old: ActiveCall, to new: ActiveCall, reason: (NodeID) -> LeaveReason
  ) -> [ChannelEvent] {
    var events: [ChannelEvent] = []
    var call = old
    call.isLed = new.isLed
    for member in old.participants where !new.participants.contains(member) {
      call.participants.removeAll { $0 == member }
      call.byPresence.removeAll { $0 == member }
      events.append(.callLeft(call, member, reason(member)))
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
