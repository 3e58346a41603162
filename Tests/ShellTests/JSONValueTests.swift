import FoundationEssentials
import Muster
import MusterBase
import Testing

struct JSONValueTests {
  @Test func fieldsKeepTheirOrder() {
    let value = JSONValue.object([
      ("z", .integer(-1)), ("a", .array([.null, .bool(true)])), ("n", .number(1.5)),
    ])
    #expect(value.text == #"{"z":-1,"a":[null,true],"n":1.500}"#)
  }

  @Test(arguments: [
    (0.0005, "0.001"), (-0.25, "-0.250"), (12.3456, "12.346"), (.nan, "null"),
    (.infinity, "null"), (1e300, "null"),
  ])
  func numbersHaveThreeDecimals(value: Double, text: String) {
    #expect(JSONValue.number(value).text == text)
  }

  @Test func noControlCharacterStandsUnescaped() throws {
    var prng = PRNG(seed: 4)
    for _ in 0..<500 {
      var text = ""
      for _ in 0..<20 {
        let code = prng.chance(0.5) ? prng.below(0xA0) : prng.below(0x11_0000)
        if let scalar = Unicode.Scalar(UInt32(code)) { text.unicodeScalars.append(scalar) }
      }
      let json = JSONValue.string(text).text
      #expect(!json.unicodeScalars.contains { $0.value < 0x20 || (0x7F..<0xA0).contains($0.value) })
      let back = try JSONDecoder().decode([String].self, from: Data("[\(json)]".utf8))
      #expect(back == [text])
    }
  }
}
