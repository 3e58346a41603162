import MusterBase
import Testing

@Test(arguments: [
  ("Ada", "Ada"), ("  Ada  ", "Ada"), ("A\u{1B}[31mda", "A\u{FFFD}[31mda"), ("a\nb", "a\u{FFFD}b"),
  ("a\u{7F}b\u{9B}c", "a\u{FFFD}b\u{FFFD}c"), ("\u{202E}ada", "\u{FFFD}ada"), ("", ""), ("   ", ""),
  ("Ååå", "Ååå"), ("🧑‍🚀", "🧑‍🚀"), ("a\u{2028}b", "a\u{FFFD}b"),
])
func namesAreMadeSafeToShow(text: String, shown: String) {
  #expect(DisplayText.sanitized(text, limit: 64) == shown)
}

/// The formatting characters of Unicode TR 9: any of them can disguise one name as another.
@Test(arguments: [
  0x061C, 0x200E, 0x200F, 0x202A, 0x202B, 0x202C, 0x202D, 0x202E, 0x2066, 0x2067, 0x2068, 0x2069,
])
func noDirectionalControlIsShown(value: Int) throws {
  let control = try #require(Unicode.Scalar(UInt32(value)))
  let shown = DisplayText.sanitized("a\(control)b", limit: 64)
  #expect(!shown.unicodeScalars.contains(control))
}

@Test func longNamesAreCutBetweenCharacters() {
  for limit in 0..<20 {
    let cut = DisplayText.sanitized("añ€🧑x\u{0}y€€€", limit: limit)
    #expect(cut.utf8.count <= limit)
    #expect("añ€🧑x\u{FFFD}y€€€".hasPrefix(cut))
  }
}

@Test(arguments: [
  ("Ada-Lovelace_1", "Ada-Lovelace_1"), ("../../etc/passwd", "______etc_passwd"), ("", "member"),
  ("a b\u{0}c", "a_b_c"), ("Å", "_"),
])
func fileNamesHoldPlainLettersOnly(text: String, name: String) {
  #expect(DisplayText.fileName(text) == name)
}

@Test func hostileNamesNeverReachAScreenOrAPath() {
  var random = PRNG(seed: 8)
  for _ in 0..<50_000 {
    let bytes = random.bytes(random.below(100))
    let text = String(decoding: bytes, as: UTF8.self)
    let shown = DisplayText.sanitized(text, limit: Limits.nameBytes)
    #expect(shown.utf8.count <= Limits.nameBytes)
    #expect(
      shown.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7F..<0xA0).contains($0.value) })
    let name = DisplayText.fileName(text)
    #expect(!name.isEmpty && name.utf8.count <= 40)
    #expect(!name.contains("/") && !name.contains("."))
  }
}

@Test(arguments: [("640x360", 640, 360), ("1x1", 1, 1), ("16384x16384", 16384, 16384)])
func sizesAreRead(text: String, width: Int, height: Int) {
  #expect(VideoSize(text) == VideoSize(width: width, height: height))
  #expect(VideoSize(text)?.description == text)
}

@Test(arguments: [
  "", "x", "640", "640x", "x360", "640x360x1", "0x1", "1x16385", "-1x5", "a x b",
  "99999999999999999999x1",
])
func otherTextIsNoSize(text: String) { #expect(VideoSize(text) == nil) }

@Test(arguments: [
  ("219912cccc4a35f1", true), ("219912CCCC4A35F1", true), ("219912cccc4a35f1\u{200B}", true),
  ("2l99l2cccc4a35fI", true), ("219912сссс4а35f1", true), ("2199 12cc cc4a 35f1", true),
  (String(repeating: "0", count: 64), true), ("219912cccc4a35f", false), ("", false),
  ("Ada Byron Lovelace", false), ("219912cccc4a35f12", false),
])
func whatCanBeTakenForAnID(text: String, isLike: Bool) {
  #expect(LookAlikes.resemblesID(text) == isLike)
}
