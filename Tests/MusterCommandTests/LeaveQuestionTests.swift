import MusterCommand
import Testing

struct LeaveQuestionTests {
  /// A key that means something else while nothing is asked, such as `q` once more, answers
  /// nothing: the call of others is not to end by a key that was held.
  @Test func onlyTheKeysOnOfferAnswer() {
    let answers: [(input: [UInt8], LeaveQuestion.Answer?)] = [
      (Array("e".utf8), .endForAll), (Array("h".utf8), .handOver), ([0x1B], .stay),
      (Array("q".utf8), nil), (Array("c".utf8), nil), (Array("eh".utf8), nil),
      (Array("\u{1B}[A".utf8), nil), ([], nil),
    ]
    for (input, answer) in answers {
      #expect(LeaveQuestion.answer(input, canHandOver: true) == answer)
    }
    #expect(LeaveQuestion.answer(Array("h".utf8), canHandOver: false) == nil)
  }
}
