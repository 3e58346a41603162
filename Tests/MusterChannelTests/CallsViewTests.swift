import MusterBase
import MusterChannel
import MusterCrypto
import Testing

/// The events that lead from one view of the call to the next.
struct CallsViewTests {
  private let a = testIdentity(1).id
  private let b = testIdentity(2).id
  private let c = testIdentity(3).id

  private func info(
    _ call: UInt64, by initiator: NodeID, term: UInt32 = 1, order: UInt64? = nil
  ) -> CallInfo {
    CallInfo(
      id: callID(call), initiator: initiator, startedAt: 0, term: term, order: order ?? call,
      standing: .joined)
  }

  private func call(_ info: CallInfo, _ members: NodeID...) -> ActiveCall {
    ActiveCall(info: info, participants: members.sorted(), byPresence: members)
  }

  private func events(
    _ old: ActiveCall?, _ new: ActiveCall?, over: [UInt64] = [],
    by ender: NodeID? = nil,
    merged: Bool = false, isLeft: Bool = false, gone: (member: NodeID, reason: LeaveReason)? = nil
  ) -> [ChannelEvent] {
    CallView.events(
      from: old, to: new, ender: { over.map(callID).contains($0) ? ender ?? a : nil },
      hasMerged: merged,
      isLeft: isLeft, reason: { gone?.member == $0 ? gone?.reason ?? .left : .left })
  }

  @Test func anUnchangedCallHasNoEvents() {
    let seven = call(info(7, by: a), a, b)
    #expect(events(nil, nil).isEmpty)
    #expect(events(seven, seven).isEmpty)
  }

  @Test func startsJoinsAndLeavesAreReportedOnce() {
    let seven = info(7, by: a)
    #expect(events(nil, call(seven, a, b)) == [.callStarted(call(seven, a, b))])
    #expect(
      events(call(seven, a, b), call(seven, a, c)) == [
        .callLeft(call(seven, a), b, .left), .callJoined(call(seven, a, c), c),
      ])
    let two = [b, c].sorted()
    #expect(
      events(call(seven, a), call(seven, a, b, c)) == [
        .callJoined(call(seven, a, two[0]), two[0]),
        .callJoined(call(seven, a, b, c), two[1]),
      ])
  }

  @Test func aDepartureHasItsReason() {
    let seven = info(7, by: a)
    #expect(
      events(call(seven, a, b), call(seven, a), gone: (b, .crashed)) == [
        .callLeft(call(seven, a), b, .crashed)
      ])
    let last = events(call(seven, b), nil, gone: (b, .removed))
    #expect(last.map(reason) == [.removed, nil])
  }

  private func reason(_ event: ChannelEvent) -> LeaveReason? {
    if case .callLeft(_, _, let reason) = event { reason } else { nil }
  }

  @Test func aHandOverIsReportedBetweenLeavesAndJoins() {
    let (old, new) = (info(7, by: a), info(7, by: b, term: 2))
    #expect(
      events(call(old, a, b), call(new, b, c)) == [
        .callLeft(call(old, b), a, .left), .callHandedOver(call(new, b)),
        .callJoined(call(new, b, c), c),
      ])
  }

  @Test func callsEndByTheInitiatorByAMergeOrForLackOfParticipants() {
    let (seven, eight) = (info(7, by: a), info(8, by: b))
    #expect(
      events(call(seven, a, b), nil, over: [7]) == [.callEnded(seven, reason: "ended")])
    #expect(
      events(call(eight, b), call(seven, a, b)) == [
        .callEnded(eight, reason: "merged"), .callStarted(call(seven, a, b)),
      ])
    #expect(
      events(call(eight, b), call(seven, a, b), over: [8], by: b) == [
        .callEnded(eight, reason: "ended"), .callStarted(call(seven, a, b)),
      ])
    #expect(
      events(call(eight, b), nil, merged: true) == [.callEnded(eight, reason: "merged")])
    let nobody = ActiveCall(info: seven, participants: [], byPresence: [])
    #expect(
      events(call(seven, a), call(eight, b)) == [
        .callLeft(nobody, a, .left), .callEnded(seven, reason: "empty"),
        .callStarted(call(eight, b)),
      ])
  }

  /// Its claim to a later term came together with the end.
  @Test func theMemberThatEndedACallIsNamed() {
    let ended = info(7, by: b)
    #expect(
      events(call(info(7, by: a), a, b, c), nil, over: [7], by: b)
        == [.callEnded(ended, reason: "ended")])
  }

  /// Participants are still there, but for this node the call is over.
  @Test func aCallThatNobodyLeadsIsOverForOutsiders() {
    let eight = info(8, by: a)
    #expect(
      events(call(eight, b), nil, isLeft: true) == [.callEnded(eight, reason: "leaderless")])
    #expect(
      events(call(eight, b), nil, over: [8], isLeft: true) == [.callEnded(eight, reason: "ended")])
  }

  @Test func participantsOfACallThatNobodyLeadsMoveToAYoungerOne() {
    var left = call(info(7, by: a), b)
    left.isLed = false
    let young = call(info(8, by: c), b, c)
    #expect(
      events(left, young) == [.callEnded(left.info, reason: "merged"), .callStarted(young)])
  }
}
