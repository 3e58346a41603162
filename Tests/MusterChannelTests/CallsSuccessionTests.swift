import MusterBase
import MusterChannel
import MusterCrypto
import Testing

/// Succession after an initiator has vanished, decided by each node from what it observes.
struct CallsSuccessionTests {
  private let a = testIdentity(1).id
  private let b = testIdentity(2).id
  private let c = testIdentity(3).id

  private func call(_ byPresence: [NodeID], term: UInt32 = 1, by initiator: NodeID) -> ActiveCall {
    ActiveCall(
      info: CallInfo(
        id: callID(7), initiator: initiator, startedAt: 0, term: term, order: 1,
        standing: .joined),
      participants: byPresence.sorted(), byPresence: byPresence)
  }

  /// One node's succession state with defaults for most inputs.
  private struct Watch {
    var succession = Succession()
    let own: NodeID
    var isInCall = true
    var endsWithInitiator = false
    var isHandedOver = false
    var barred: [NodeID] = []

    init(_ own: NodeID) { self.own = own }

    mutating func see(_ call: ActiveCall?, at now: Double) -> Succession.Verdict {
      succession.update(
        call, own: own, isInCall: isInCall, endsWithInitiator: endsWithInitiator,
        isHandedOver: isHandedOver,
        mayHandOver: { [barred] in !barred.contains($0) }, at: seconds(now))
    }
  }

  @Test func theLongestPresentTakesOverAfterTheGrace() {
    var watch = Watch(b)
    #expect(watch.see(call([a, b, c], by: a), at: 0) == .none)
    #expect(watch.succession.deadline == nil)
    let rest = call([b, c], by: a)
    #expect(watch.see(rest, at: 5) == .none)
    #expect(watch.succession.deadline == seconds(15))
    #expect(watch.see(rest, at: 14.9) == .none)
    #expect(watch.see(rest, at: 15) == .takeOver(term: 2))
    #expect(watch.succession.deadline == nil)
    // The verdict is given once, even if the claim never takes effect.
    #expect(watch.see(rest, at: 16) == .none)
    #expect(watch.see(call([b, c], term: 2, by: b), at: 17) == .none)
  }

  @Test func aCallThatIsHandedOverNeedsNoGrace() {
    var (first, second) = (Watch(b), Watch(c))
    #expect(first.see(call([a, b, c], by: a), at: 0) == .none)
    first.isHandedOver = true
    second.isHandedOver = true
    let rest = call([b, c], by: a)
    #expect(first.see(rest, at: 1) == .takeOver(term: 2))
    #expect(second.see(rest, at: 1) == .none)
    #expect(second.succession.deadline == seconds(3))
    #expect(second.see(rest, at: 3) == .takeOver(term: 2))
    // Where calls end with their initiators, such a presence is one of a patched node.
    var third = Watch(b)
    (third.isHandedOver, third.endsWithInitiator) = (true, true)
    #expect(third.see(rest, at: 1) == .none)
    #expect(third.see(rest, at: 11) == .giveUp)
  }

  /// A member that may take calls over claims this one, and hands it over again and again.
  @Test func handOversMakeANodeSignOneClaimInTheGrace() {
    var watch = Watch(b)
    watch.isHandedOver = true
    var claims: [Double] = []
    var term: UInt32 = 1
    for tick in 0...300 {
      let now = Double(tick) / 10
      guard case .takeOver(let next) = watch.see(call([b, c], term: term, by: a), at: now) else {
        continue
      }
      claims.append(now)
      #expect(watch.see(call([b, c], term: next, by: b), at: now) == .none)
      term = next + 1
    }
    #expect(claims == [0, 10, 20, 30])
  }

  /// It vanishes first: the presence with which it leaves arrives late, by way of another.
  @Test func aHandOverCutsTheGraceShort() {
    var watch = Watch(b)
    #expect(watch.see(call([b, c], by: a), at: 0) == .none)
    #expect(watch.succession.deadline == seconds(10))
    watch.isHandedOver = true
    #expect(watch.see(call([b, c], by: a), at: 2) == .takeOver(term: 2))
  }

  @Test func theNextInLineActsWhenTheFirstDoesNot() {
    let rest = call([b, c], by: a)
    var watch = Watch(c)
    #expect(watch.see(rest, at: 0) == .none)
    #expect(watch.succession.deadline == seconds(12))
    #expect(watch.see(rest, at: 11.9) == .none)
    #expect(watch.see(rest, at: 12) == .takeOver(term: 2))
  }

  @Test func aPromotedSuccessorActsSooner() {
    var watch = Watch(c)
    #expect(watch.see(call([b, c], by: a), at: 0) == .none)
    #expect(watch.see(call([c], by: a), at: 4) == .none)
    #expect(watch.succession.deadline == seconds(10))
    #expect(watch.see(call([c], by: a), at: 10) == .takeOver(term: 2))
  }

  @Test func aMemberWithoutTheRightIsSkipped() {
    let rest = call([b, c], by: a)
    var passed = Watch(b)
    var next = Watch(c)
    passed.barred = [b]
    next.barred = [b]
    #expect(passed.see(rest, at: 0) == .none && next.see(rest, at: 0) == .none)
    #expect(passed.succession.deadline == nil)
    #expect(next.see(rest, at: 10) == .takeOver(term: 2))
    #expect(passed.see(rest, at: 60) == .none)
  }

  @Test func anInitiatorWhoReturnsKeepsTheCall() {
    var watch = Watch(b)
    #expect(watch.see(call([b], by: a), at: 0) == .none)
    #expect(watch.see(call([b, a], by: a), at: 9.9) == .none)
    #expect(watch.see(call([b], by: a), at: 12) == .none)
    #expect(watch.see(call([b], by: a), at: 21.9) == .none)
    #expect(watch.see(call([b], by: a), at: 22) == .takeOver(term: 2))
  }

  @Test func everyTermHasAGraceOfItsOwn() {
    var watch = Watch(c)
    #expect(watch.see(call([b, c], by: a), at: 0) == .none)
    // The successor vanishes as soon as it has taken over.
    #expect(watch.see(call([c], term: 2, by: b), at: 10.5) == .none)
    #expect(watch.see(call([c], term: 2, by: b), at: 20) == .none)
    #expect(watch.see(call([c], term: 2, by: b), at: 20.5) == .takeOver(term: 3))
  }

  @Test func aWatcherDoesNothing() {
    var watch = Watch(c)
    watch.isInCall = false
    for time in [0, 10, 100] as [Double] {
      #expect(watch.see(call([b], by: a), at: time) == .none)
      #expect(watch.succession.deadline == nil)
    }
  }

  @Test func everyoneLeavesACallThatEndsWithItsInitiator() {
    for node in [b, c] {
      var watch = Watch(node)
      watch.endsWithInitiator = true
      // Leaving needs no right, so the barred members give up as well.
      watch.barred = [b, c]
      let rest = call([b, c], by: a)
      #expect(watch.see(rest, at: 1) == .none)
      #expect(watch.succession.deadline == seconds(11))
      #expect(watch.see(rest, at: 11) == .giveUp)
      #expect(watch.see(rest, at: 12) == .none)
    }
  }

  @Test func withoutACallThereIsNothingToWatch() {
    var watch = Watch(b)
    #expect(watch.see(call([b], by: a), at: 0) == .none)
    #expect(watch.see(nil, at: 9) == .none)
    #expect(watch.succession.deadline == nil)
    #expect(watch.see(call([b], by: a), at: 10) == .none)
    #expect(watch.succession.deadline == seconds(20))
  }

  @Test func theLastTermIsNotCountedBeyond() {
    var watch = Watch(b)
    #expect(watch.see(call([b], term: .max, by: a), at: 0) == .none)
    #expect(watch.see(call([b], term: .max, by: a), at: 100) == .none)
  }
}
