import MusterBase
import MusterSimulator
import Testing

struct PromiseCheckerTests {
  private func time(_ seconds: Int64) -> Instant { .zero + .seconds(seconds) }

  @Test func aPromiseMayBeBrokenForAWhile() {
    var checker = PromiseChecker(nodes: 2)
    let promise = PromiseChecker.Promise.sees(0, 1)
    #expect(checker.observed(promise, isKept: false, at: time(0)) == nil)
    #expect(checker.observed(promise, isKept: false, at: time(4)) == nil)
    #expect(checker.observed(promise, isKept: false, at: time(5)) == "n0 does not see n1")
    #expect(checker.observed(promise, isKept: true, at: time(6)) == nil)
    #expect(checker.observed(promise, isKept: false, at: time(7)) == nil)
    #expect(checker.observed(promise, isKept: false, at: time(11)) == nil)
  }

  @Test func aMemberThatHasCrashedIsExempt() {
    var checker = PromiseChecker(nodes: 3)
    let promise = PromiseChecker.Promise.meets(0, 1)
    checker.exempt([1], until: time(6))
    for second in 0...10 as ClosedRange<Int64> {
      #expect(checker.observed(promise, isKept: false, at: time(second)) == nil)
      #expect(checker.observed(.sees(0, 2), isKept: true, at: time(second)) == nil)
    }
    #expect(checker.observed(promise, isKept: false, at: time(11)) == "n0 is not in a call with n1")
  }

  @Test func everyReaderMustShowAMessageInTime() {
    var checker = PromiseChecker(nodes: 3)
    checker.wrote("hello", by: 0, for: [0, 1, 2], at: time(1))
    checker.shown("hello", at: 1)
    #expect(checker.unread(at: time(5)) == nil)
    #expect(checker.unread(at: time(6)) == "n2 does not show \"hello\" of n0")
    checker.shown("hello", at: 2)
    #expect(checker.unread(at: time(6)) == nil)
    checker.wrote("again", by: 1, for: [0, 1], at: time(2))
    checker.crashed(0)
    #expect(checker.unread(at: time(60)) == nil)
  }

  @Test func aMessageThatItsCrashedAuthorHadNotShownMayBeLost() {
    var checker = PromiseChecker(nodes: 2)
    checker.wrote("durable", by: 0, for: [0, 1], at: time(1))
    checker.shown("durable", at: 0)
    checker.wrote("lost", by: 0, for: [0, 1], at: time(2))
    checker.crashed(0)
    #expect(checker.unread(at: time(9)) == "n1 does not show \"durable\" of n0")
    #expect(checker.forgotten(in: ["durable"], of: 1, at: time(9)) == nil)
    #expect(checker.forgotten(in: [], of: 1, at: time(9)) == "n1 has lost \"durable\" of n0")
  }

  @Test func theNewestMessagesOfEachAuthorStay() {
    var checker = PromiseChecker(nodes: 2)
    let texts = (0...PromiseChecker.remembered).map { "message \($0)" }
    for text in texts { checker.wrote(text, by: 0, for: [1], at: time(1)) }
    checker.wrote("too new", by: 1, for: [0], at: time(8))
    let kept = Array(texts.dropFirst())
    #expect(checker.forgotten(in: kept, of: 1, at: time(10)) == nil)
    #expect(
      checker.forgotten(in: Array(kept.dropLast()), of: 1, at: time(10))
        == "n1 has lost \"message 10\" of n0")
    #expect(checker.writtenAt(Array("message 3".utf8)) == time(1))
    #expect(checker.writtenAt(Array("other".utf8)) == nil)
  }
}
