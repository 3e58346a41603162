import MusterBase
import MusterChannel
import MusterWire
import Testing

/// When a member attests that it is in a call together with others.
struct JoiningScheduleTests {
  private let own = Pen(1).id
  private let other = Pen(2).id
  private let start = Instant.zero + .seconds(100)
  private var watch = JoiningSchedule()

  private func call(
    _ number: UInt64, _ participants: [NodeID], standing: CallStanding = .informed,
    by initiator: NodeID? = nil
  ) -> ActiveCall {
    let info = CallInfo(
      id: callID(number), initiator: initiator ?? own, startedAt: 0, term: 1, order: 1,
      standing: standing)
    return ActiveCall(info: info, participants: participants.sorted(), byPresence: participants)
  }

  @Test mutating func onceAfterAMomentAndOnceAfterAWhile() {
    let both = call(7, [own, other])
    let alone = watch.update(call(7, [own]), own: own, published: nil, at: start)
    #expect(alone == nil && watch.deadline == nil)
    let early = watch.update(both, own: own, published: nil, at: start + .seconds(5))
    #expect(early == nil && watch.deadline == start + .seconds(6))
    let met = watch.update(both, own: own, published: nil, at: start + .seconds(6))
    #expect(met == CallJoining(call: callID(7), stage: .met))
    #expect(watch.deadline == start + .seconds(15))
    let again = watch.update(both, own: own, published: met, at: start + .seconds(14))
    #expect(again == nil && watch.deadline == start + .seconds(15))
    let lasting = watch.update(both, own: own, published: met, at: start + .seconds(15))
    #expect(lasting == CallJoining(call: callID(7), stage: .lasting))
    let enough = watch.update(both, own: own, published: lasting, at: start + .seconds(60))
    #expect(enough == nil && watch.deadline == nil)
  }

  @Test mutating func timeAloneDoesNotCount() {
    let both = call(7, [own, other])
    _ = watch.update(both, own: own, published: nil, at: start)
    let met = watch.update(both, own: own, published: nil, at: start + .seconds(1))
    _ = watch.update(call(7, [own]), own: own, published: met, at: start + .seconds(6))
    _ = watch.update(both, own: own, published: met, at: start + .seconds(8))
    #expect(watch.deadline == start + .seconds(18))
  }

  @Test mutating func anotherCallBeginsAnew() {
    _ = watch.update(call(7, [own, other]), own: own, published: nil, at: start)
    let met = CallJoining(call: callID(7), stage: .met)
    let merged = watch.update(
      call(8, [own, other]), own: own, published: met, at: start + .seconds(9))
    #expect(merged == nil && watch.deadline == start + .seconds(10))
  }

  @Test mutating func aCallOfOthersIsNotJoined() {
    let theirs = watch.update(call(7, [other]), own: own, published: nil, at: start)
    #expect(theirs == nil && watch.deadline == nil)
  }

  @Test mutating func aBlindCallIsVouchedForByWaitingInIt() {
    let alone = call(7, [own], standing: .blind)
    let early = watch.update(alone, own: own, published: nil, at: start)
    #expect(early == nil && watch.deadline == start + .seconds(7))
    // Company for a moment is no waiting, and has a joining of its own.
    _ = watch.update(call(7, [own, other]), own: own, published: nil, at: start + .seconds(6))
    #expect(watch.deadline == start + .seconds(7))
    let again = watch.update(alone, own: own, published: nil, at: start + .milliseconds(6500))
    #expect(again == nil && watch.deadline == start + .milliseconds(13_500))
    let met = watch.update(alone, own: own, published: nil, at: start + .milliseconds(13_500))
    #expect(met == CallJoining(call: callID(7), stage: .met))
    let enough = watch.update(alone, own: own, published: met, at: start + .seconds(60))
    #expect(enough == nil && watch.deadline == nil)
  }

  @Test mutating func onlyTheInitiatorOfABlindCallWaits() {
    let calls = [
      call(7, [own]), call(7, [own], standing: .joined),
      call(7, [own], standing: .blind, by: other),
    ]
    for call in calls {
      _ = watch.update(call, own: own, published: nil, at: start)
      let joining = watch.update(call, own: own, published: nil, at: start + .seconds(60))
      #expect(joining == nil && watch.deadline == nil)
    }
  }
}
