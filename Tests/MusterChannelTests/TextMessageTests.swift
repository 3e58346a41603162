import MusterBase
import MusterChannel
import MusterCrypto
import Testing

/// The sanitising of a text before it is shown.
struct TextMessageTests {
  @Test(arguments: [
    ("hello", "hello"), ("  hello \n", "hello"), ("one\ntwo\tthree", "one two three"),
    ("one\r\ntwo", "one  two"), ("\u{1B}[2Jgone", "\u{FFFD}[2Jgone"),
    ("abc\u{202E}fed", "abc\u{FFFD}fed"), ("Grüße 👋", "Grüße 👋"), ("", ""),
  ])
  func aTextIsOneLineAndSafeToShow(text: String, shown: String) {
    let message = TextMessage(
      id: .zero, from: testIdentity(1).id, to: nil, text: text, sentAt: 0, counter: 0)
    #expect(message.text == shown)
  }

  @Test func aTextIsNoLongerThanItMayBe() {
    let message = TextMessage(
      id: .zero, from: testIdentity(1).id, to: nil,
      text: String(repeating: "ä", count: 10_000), sentAt: 0, counter: 0)
    #expect(message.text == String(repeating: "ä", count: Limits.textBytes / 2))
  }
}
