import MusterBase
import MusterChannel
import MusterCrypto
import MusterSimulator
import MusterWire
import Testing

private func identity(_ seed: UInt64) -> Identity {
  var entropy = Entropy.seeded(seed)
  return Identity(generating: &entropy)
}

/// The checker for members that leave an established call, and for false joinings.
struct StandingCheckerTests {
  private let first = identity(1)
  private let second = identity(2)
  private let key = ChannelKey.fromName("standing")
  private let old = CallID(high: 1, low: 1)
  private let new = CallID(high: 2, low: 2)

  private func at(_ seconds: Int) -> Instant { .zero + .seconds(seconds) }

  private func info(_ call: CallID) -> CallInfo {
    CallInfo(
      id: call, initiator: first.id, startedAt: 0, term: 1, order: 1, standing: .blind)
  }

  private func claim(_ call: CallID, term: UInt32 = 1) -> EntryBody {
    .claim(CallClaim(call: call, term: term, startedAt: 0, order: 1, knowledge: .none))
  }

  private func joining(_ call: CallID, _ stage: CallJoining.Stage) -> EntryBody {
    .joining(CallJoining(call: call, stage: stage))
  }

  private func entry(
    _ body: EntryBody, by author: Identity, _ time: Instant = .zero
  ) -> SignedEntry {
    let lamport = UInt64(time.nanoseconds)
    let entry = Entry(author: author.id, sequence: 1, lamport: lamport, body: body)
    return .sign(entry, by: author, in: key.channelID)
  }

  /// The fault that the checker reports when an author signs this body at `time`.
  private func fault(
    _ body: EntryBody, by author: Identity, _ time: Instant, _ checker: inout StandingChecker
  ) -> String? {
    let index = author.id == first.id ? 0 : 1
    let id = entry(body, by: author, time).id
    return checker.signed(body, id, by: author.id, at: index, time)
  }

  /// Both hosts have been in `old` with each other since 0 s, and in `new` since 20 s.
  private func checker(
    _ words: [(body: EntryBody, author: Identity)], at seconds: Int
  ) -> StandingChecker {
    var checker = StandingChecker(nodes: 2)
    for index in 0..<2 { checker.isIn(old, withOthers: true, at: index, at(0)) }
    if seconds >= 20 {
      for index in 0..<2 { checker.isIn(new, withOthers: true, at: index, at(20)) }
    }
    for word in words {
      #expect(fault(word.body, by: word.author, at(seconds), &checker) == nil)
    }
    return checker
  }

  private func isMoveFound(
    known: [(body: EntryBody, author: Identity)], ever: [(body: EntryBody, author: Identity)],
    may: Bool = true
  ) -> Bool {
    let checker = checker(ever, at: 40)
    let known = known.map { entry($0.body, by: $0.author) }
    return checker.moved(from: info(old), to: info(new), known: known) { _, _ in may } != nil
  }

  @Test func aMoveOutOfACallThatPeopleAreInIsFound() {
    let joined = [(claim(old), first), (joining(old, .met), second)]
    let lasting = [
      (claim(old), first), (joining(old, .lasting), first), (joining(old, .lasting), second),
    ]
    let taken = [(claim(old), first), (claim(old, term: 2), second)]
    let alone = [(claim(new), first)]
    let equal = [(claim(new), first), (joining(new, .met), second)]
    for known in [joined, lasting, taken] {
      #expect(isMoveFound(known: known, ever: alone))
      #expect(!isMoveFound(known: known, ever: alone, may: false))
    }
    #expect(!isMoveFound(known: joined, ever: equal))
    #expect(isMoveFound(known: lasting, ever: equal))
    #expect(isMoveFound(known: taken, ever: equal))
  }

  @Test func aMoveOutOfACallOfOneIsNoFault() {
    let alone = [(claim(old), first), (joining(old, .lasting), first)]
    #expect(!isMoveFound(known: alone, ever: [(claim(new), second)]))
    // A node that lacks the first claim cannot tell the first initiator from later participants.
    let unfounded = [(joining(old, .met), second)]
    #expect(!isMoveFound(known: unfounded, ever: [(claim(new), second)]))
  }

  @Test func aJoiningBeforeItsTimeIsFound() {
    for stage in CallJoining.Stage.allCases {
      var checker = checker([], at: 0)
      let body = joining(old, stage)
      let due = at(0) + stage.time
      let early = at(0) + (stage.time - .milliseconds(1))
      #expect(fault(body, by: first, early, &checker) != nil)
      #expect(fault(body, by: first, due, &checker) == nil)
      #expect(fault(joining(new, stage), by: first, due, &checker) != nil)
      // The member is alone for an instant, which restarts its time in company.
      checker.isIn(old, withOthers: false, at: 0, due)
      checker.isIn(old, withOthers: true, at: 0, due)
      // After the loss of a disk, others return entries that were signed earlier.
      #expect(fault(body, by: first, due, &checker) == nil)
      #expect(fault(body, by: first, due + .milliseconds(1), &checker) != nil)
    }
  }

  @Test func aMissingJoiningIsFound() {
    var checker = checker([], at: 0)
    #expect(checker.missing(of: first.id, at: 0, known: { [] }, at(1)) == nil)
    #expect(checker.missing(of: first.id, at: 0, known: { [] }, at(2)) != nil)
    // Alone for a moment: the node may begin to count anew then, or not.
    var other = checker
    other.wasAlone(at: 0, at(1))
    #expect(other.missing(of: first.id, at: 0, known: { [] }, at(2)) == nil)
    #expect(other.missing(of: first.id, at: 0, known: { [] }, at(3)) != nil)
    #expect(fault(joining(old, .met), by: first, at(1), &other) == nil)
    #expect(fault(joining(old, .met), by: first, at(1), &checker) == nil)
    #expect(checker.missing(of: first.id, at: 0, known: { [] }, at(10)) == nil)
    #expect(checker.missing(of: first.id, at: 0, known: { [] }, at(11)) != nil)
    #expect(fault(joining(old, .lasting), by: first, at(10), &checker) == nil)
    #expect(checker.missing(of: first.id, at: 0, known: { [] }, at(60)) == nil)
    // An older joining, which the node has after the loss of its disk, says as much.
    let kept = entry(joining(old, .lasting), by: first)
    #expect(fault(joining(new, .met), by: first, at(60), &checker) != nil)
    #expect(checker.missing(of: first.id, at: 0, known: { [] }, at(60)) != nil)
    #expect(checker.missing(of: first.id, at: 0, known: { [kept] }, at(60)) == nil)
    checker.isIn(nil, withOthers: false, at: 1, at(1))
    #expect(checker.missing(of: second.id, at: 1, known: { [] }, at(60)) == nil)
    #expect(checker.isInside(old, at: 0) && !checker.isInside(old, at: 1))
  }
}
