import Muster
import MusterBase
import Testing

struct CommandTests {
  private func parse(_ text: String) -> Command? { try? Command(json: Array(text.utf8)) }

  @Test func commandsOfTheContractAreUnderstood() {
    #expect(parse(#"{"do":"start-call"}"#)?.verb == .startCall)
    #expect(parse(#"{"do":"mute","media":"audio"}"#)?.media == .audio)
    let watch = parse(#"{"do":"watch","member":"00ff","width":640,"height":360,"channel":"lab"}"#)
    #expect(watch?.member == "00ff")
    #expect(watch?.width == 640)
    #expect(watch?.channel == "lab")
    #expect(parse(#"{"do":"watch","off":true}"#)?.off == true)
  }

  @Test(arguments: [
    "", "{", "[]", "null", #"{"do":"dance"}"#, #"{"media":"audio"}"#, #"{"do":1}"#,
    #"{"do":"mute","media":"smell"}"#, #"{"do":"watch","width":1e99}"#, "\u{0}",
    #"{"do":"watch","width":"wide"}"#,
  ])
  func whatIsNoCommandIsRefusedWithAHint(text: String) {
    #expect(throws: MusterError.self) { try Command(json: Array(text.utf8)) }
  }

  @Test func anOverlongCommandIsRefused() {
    let text =
      #"{"do":"mute","media":"audio","member":""# + String(repeating: "a", count: 5000) + "\"}"
    #expect(parse(text) == nil)
  }

  @Test func randomBytesNeverTrap() {
    var prng = PRNG(seed: 20)
    for _ in 0..<5_000 {
      _ = try? Command(json: prng.bytes(prng.below(200)))
    }
    let valid = Array(#"{"do":"watch","member":"00ff","width":640,"height":360}"#.utf8)
    for _ in 0..<5_000 {
      var mutated = valid
      for _ in 0...prng.below(4) {
        mutated[prng.below(mutated.count)] = UInt8(truncatingIfNeeded: prng.next())
      }
      _ = try? Command(json: mutated)
    }
  }
}
