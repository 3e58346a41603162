import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

extension Pen {
  /// A message after `predecessors`.
  mutating func say(
    _ text: String, after predecessors: [UInt64] = [], lamport: UInt64
  ) -> SignedEntry {
    let message = Message(sentAt: 0, after: predecessors, to: nil, content: Array(text.utf8))
    return sign(.message(message), lamport: lamport)
  }
}

/// Messages are shown once, in order, each after its predecessors.
struct TextLogTests {
  private var log = MessageLog()
  private var a = Pen(1)
  private var b = Pen(2)

  @Test mutating func aBurstComesOutInTheOrder() {
    let sent = (1...4).map { a.say("\($0)", lamport: $0) }
    #expect(log.deadline == nil)
    for (delay, index) in [2, 0, 3, 1].enumerated() {
      #expect(log.insert(sent[index], at: seconds(1 + 0.005 * Double(delay))).isEmpty)
    }
    #expect(log.deadline == seconds(1.03))
    #expect(log.tick(at: seconds(1.029)).isEmpty)
    // The last message arrived late; the earlier ones precede a message whose wait is over.
    #expect(log.tick(at: seconds(1.03)) == Array(sent[0..<3]))
    #expect(log.tick(at: seconds(1.04)) == [sent[3]])
    #expect(log.deadline == nil)
    #expect(log.tick(at: seconds(9)).isEmpty)
  }

  @Test mutating func anEffectWaitsForItsCause() {
    let cause = a.say("cause", lamport: 1)
    let effect = b.say("effect", after: [cause.id.prefix], lamport: 2)
    #expect(log.insert(effect, at: seconds(1)).isEmpty)
    #expect(log.tick(at: seconds(1.03)).isEmpty)
    #expect(log.deadline == seconds(4))
    #expect(log.insert(cause, at: seconds(3)).isEmpty)
    #expect(log.tick(at: seconds(3.03)) == [cause, effect])
    #expect(log.deadline == nil)
  }

  @Test mutating func aCauseThatDoesNotComeIsGivenUpAndMayComeLater() {
    let cause = a.say("cause", lamport: 1)
    let effect = b.say("effect", after: [cause.id.prefix], lamport: 2)
    _ = log.insert(effect, at: seconds(1))
    _ = log.tick(at: seconds(1.03))
    #expect(log.tick(at: seconds(3.99)).isEmpty)
    #expect(log.tick(at: seconds(4)) == [effect])
    #expect(log.deadline == nil)
    _ = log.insert(cause, at: seconds(10))
    #expect(log.tick(at: seconds(10.03)) == [cause])
    // The late message already has a successor, so it is not a head.
    #expect(log.heads == [effect.id.prefix])
  }

  /// Messages from others, however many, do not prolong the wait.
  @Test mutating func aFloodDoesNotProlongTheWait() {
    let effect = a.say("effect", after: [77], lamport: 20)
    var shown = log.insert(effect, at: seconds(0))
    for tenth in 1...40 {
      let filler = b.say("\(tenth)", lamport: UInt64(tenth))
      shown += log.insert(filler, at: seconds(Double(tenth) / 10))
      shown += log.tick(at: seconds(Double(tenth) / 10 + 0.05))
      #expect(shown.contains(effect) == (tenth >= 30), "after \(tenth)/10 s")
    }
  }

  @Test mutating func aPredecessorThatArrivesDoesNotProlongTheWaitForAnother() {
    let first = b.say("first", after: [77], lamport: 1)
    let effect = a.say("effect", after: [first.id.prefix, 78], lamport: 2)
    _ = log.insert(effect, at: seconds(0))
    _ = log.insert(first, at: seconds(2.5))
    #expect(log.tick(at: seconds(2.99)).isEmpty)
    #expect(log.tick(at: seconds(3)) == [first, effect])
    #expect(log.deadline == nil)
  }

  /// A message that the document does not keep is not waited for.
  @Test mutating func nothingWaitsForAMessageThatIsNotKept() {
    let flood = b.say("flood", lamport: 1)
    let effect = a.say("effect", after: [flood.id.prefix], lamport: 2)
    #expect(log.insert(effect, at: seconds(1)).isEmpty)
    #expect(log.tick(at: seconds(1.5)).isEmpty)
    log.skip(flood, at: seconds(2))
    #expect(log.deadline == seconds(2))
    #expect(log.tick(at: seconds(2)) == [effect])
    log.skip(a.claim(7, lamport: 3), at: seconds(2))
    #expect(log.deadline == nil)
    let next = a.say("next", after: [flood.id.prefix], lamport: 4)
    _ = log.insert(next, at: seconds(3))
    #expect(log.tick(at: seconds(3.03)) == [next])
  }

  /// A chain of three whose first predecessor never arrives, received in reverse.
  @Test mutating func whatAnOverdueMessageFollowsIsShownBeforeIt() {
    let first = a.say("first", after: [77], lamport: 1)
    let second = b.say("second", after: [first.id.prefix], lamport: 2)
    let third = a.say("third", after: [second.id.prefix], lamport: 3)
    _ = log.insert(third, at: seconds(0))
    _ = log.insert(second, at: seconds(1))
    _ = log.insert(first, at: seconds(2))
    #expect(log.tick(at: seconds(2.99)).isEmpty)
    #expect(log.tick(at: seconds(3)) == [first, second, third])
    #expect(log.deadline == nil)
  }

  @Test mutating func nothingIsShownTwice() {
    let message = a.say("once", lamport: 1)
    _ = log.insert(message, at: seconds(1))
    _ = log.insert(message, at: seconds(1.01))
    #expect(log.tick(at: seconds(2)) == [message])
    #expect(log.insert(message, at: seconds(3)).isEmpty)
    #expect(log.deadline == nil)
  }

  @Test mutating func messagesOfAnEarlierProcessAreNotShownAgain() {
    let first = a.say("first", lamport: 1)
    let second = a.say("second", after: [first.id.prefix], lamport: 2)
    let claim = a.claim(7, lamport: 3)
    log.restore([second, claim, first])
    #expect(log.deadline == nil)
    #expect(log.heads == [second.id.prefix])
    #expect(log.insert(first, at: seconds(1)).isEmpty)
    let third = b.say("third", after: [second.id.prefix], lamport: 4)
    _ = log.insert(third, at: seconds(1))
    #expect(log.tick(at: seconds(1.03)) == [third])
  }

  @Test mutating func headsHaveNoSuccessors() {
    #expect(log.heads.isEmpty)
    let first = a.say("first", lamport: 1)
    _ = log.insert(first, at: seconds(1))
    // The message is a head, although it is not shown yet.
    #expect(log.heads == [first.id.prefix])
    let second = a.say("second", after: log.heads, lamport: 2)
    _ = log.insert(second, at: seconds(1))
    #expect(log.heads == [second.id.prefix])
    _ = log.tick(at: seconds(2))
    #expect(log.heads == [second.id.prefix])

    var others: [UInt64] = []
    for number in 1...6 as ClosedRange<UInt64> {
      let other = b.say("\(number)", lamport: 2 + number)
      others.append(other.id.prefix)
      _ = log.insert(other, at: seconds(3))
    }
    #expect(log.heads == Array(others.suffix(4)))
    _ = log.tick(at: seconds(4))
    #expect(log.heads == Array(others.suffix(4)))
  }

  /// A message with an unknown predecessor delays only itself.
  @Test mutating func aMadeUpPredecessorIsNoHead() {
    let honest = a.say("honest", lamport: 1)
    let liar = b.say("liar", after: [123], lamport: 2)
    _ = log.insert(honest, at: seconds(1))
    _ = log.insert(liar, at: seconds(1))
    #expect(log.heads == [honest.id.prefix])
    let next = a.say("next", after: log.heads, lamport: 3)
    _ = log.insert(next, at: seconds(1))
    #expect(log.tick(at: seconds(1.03)) == [honest, next])
    #expect(log.tick(at: seconds(4)) == [liar])
  }

  /// A Lamport counter that contradicts the predecessors delays a message, but neither hides nor
  /// repeats it.
  @Test mutating func aCauseWithAHigherCounterIsShownFirstNonetheless() {
    let cause = a.say("cause", lamport: 9)
    let effect = b.say("effect", after: [cause.id.prefix], lamport: 1)
    _ = log.insert(effect, at: seconds(1))
    _ = log.insert(cause, at: seconds(1))
    var shown = log.tick(at: seconds(1.03))
    #expect(shown == [cause])
    #expect(log.deadline.map { $0 <= seconds(1.03) } == true)
    shown += log.tick(at: seconds(1.03))
    #expect(shown == [cause, effect])
    #expect(log.deadline == nil)
  }

  @Test mutating func noMoreWaitThanTheDocumentHolds() {
    var shown: [SignedEntry] = []
    for number in 0..<(Limits.messages + 3) {
      let message = a.say("x", after: [1], lamport: UInt64(number) + 1)
      shown += log.insert(message, at: seconds(1))
    }
    #expect(shown.map(\.entry.lamport) == [1, 2, 3])
  }

  @Test mutating func otherEntriesAreNoMessages() {
    #expect(log.insert(a.claim(7, lamport: 1), at: seconds(1)).isEmpty)
    #expect(log.deadline == nil && log.heads.isEmpty)
  }
}

/// Random conversations whose messages arrive in any order; every failure names its seed.
struct TextPropertyTests {
  private struct Speech {
    var entry: SignedEntry
    var arrives: Instant
  }

  /// Each message names the heads that its author has received; all arrive within two seconds.
  private func conversation(_ prng: inout PRNG) -> [Speech] {
    var pens = (1...4).map { Pen($0) }
    var logs = pens.map { _ in MessageLog() }
    var speeches: [Speech] = []
    for lamport in 1...40 as ClosedRange<UInt64> {
      let now = seconds(0.05 * Double(lamport))
      let speaker = prng.below(pens.count)
      _ = logs[speaker].tick(at: now)
      let entry = pens[speaker].say(
        "\(lamport)", after: logs[speaker].heads, lamport: lamport)
      for reader in logs.indices where reader == speaker || prng.chance(0.6) {
        _ = logs[reader].insert(entry, at: now)
      }
      let arrives = now + .milliseconds(prng.below(2000))
      speeches.append(Speech(entry: entry, arrives: arrives))
    }
    return speeches
  }

  @Test(arguments: 1...60 as ClosedRange<UInt64>)
  func everythingIsShownOnceAndNoEffectBeforeItsCause(seed: UInt64) {
    var prng = PRNG(seed: seed)
    let speeches = conversation(&prng)
    var log = MessageLog()
    var shown: [SignedEntry] = []
    for speech in speeches.sorted(by: { $0.arrives < $1.arrives }) {
      while let deadline = log.deadline, deadline <= speech.arrives {
        shown += log.tick(at: deadline)
      }
      shown += log.insert(speech.entry, at: speech.arrives)
      if prng.chance(0.3) { shown += log.insert(speech.entry, at: speech.arrives) }
    }
    while let deadline = log.deadline { shown += log.tick(at: deadline) }
    #expect(shown.sorted() == speeches.map(\.entry).sorted(), "seed \(seed)")
    var before: [UInt64] = []
    for entry in shown {
      if case .message(let message) = entry.entry.body {
        #expect(message.after.allSatisfy { before.contains($0) }, "seed \(seed)")
      }
      before.append(entry.id.prefix)
    }
  }

  /// A tick after the deadline shows every waiting message, in order.
  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func aLateTickShowsEverything(seed: UInt64) {
    var prng = PRNG(seed: seed)
    let sent = conversation(&prng)
    let speeches = prng.permuted(sent)
    var log = MessageLog()
    var shown: [SignedEntry] = []
    for speech in speeches { shown += log.insert(speech.entry, at: seconds(1)) }
    #expect(shown.isEmpty, "seed \(seed)")
    #expect(log.tick(at: seconds(100)) == speeches.map(\.entry).sorted(), "seed \(seed)")
  }
}
