/// The check that the text of a settings file has only what settings are made of.
///
/// The parser ends the process on some malformed tables, dates and lists (LebJe/TOMLKit issue 30,
/// marzer/tomlplusplus issue 294). Settings need no tables, dates and braces, so a text with one is
/// refused before the parser sees it.
struct SettingsText {
  /// A part of a text that no setting has.
  struct Foreign: Error, Equatable {
    /// The number of its line, from 1.
    let line: Int
    /// The part, in words.
    let part: String
  }

  private let bytes: [UInt8]
  private var index = 0
  private var line = 1

  private static let newline = UInt8(ascii: "\n")
  private static let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
  private static let quotes: [UInt8] = [UInt8(ascii: "\""), UInt8(ascii: "'")]
  /// The bytes of keys, numbers and flags.
  private static let word = Set(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-.".utf8)
  /// The other bytes that may stand outside quotes.
  private static let marks = Set(",=[] \t\r\n".utf8)

  private init(_ text: String) { bytes = Array(text.utf8) }

  /// Throws for the first part of the text that no setting has.
  static func check(_ text: String) throws(Foreign) {
    var text = SettingsText(text)
    try text.check()
  }

  private mutating func check() throws(Foreign) {
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { index = 3 }  // a byte order mark
    var startsLine = true
    while index < bytes.count {
      let byte = bytes[index]
      switch byte {
      case UInt8(ascii: "#"):
        while index + 1 < bytes.count, bytes[index + 1] != Self.newline { index += 1 }
      case _ where Self.quotes.contains(byte):
        try skipQuoted(by: byte)
      case UInt8(ascii: "[") where startsLine:
        throw Foreign(line: line, part: "a table")
      case _ where Self.word.contains(byte):
        try skipWord()
      case _ where !Self.marks.contains(byte):
        let isShown = (0x21...0x7E).contains(byte)
        let part = isShown ? String(Unicode.Scalar(byte)) : "a special character"
        throw Foreign(line: line, part: "\(part) outside quotes")
      default: break
      }
      if byte == Self.newline { line += 1 }
      let isSpace = byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
      startsLine = byte == Self.newline || byte == UInt8(ascii: "\r") || (startsLine && isSpace)
      index += 1
    }
  }

  /// Goes to the last byte of a key, number or flag.
  private mutating func skipWord() throws(Foreign) {
    let word = bytes[index...].prefix(while: Self.word.contains)
    if Self.digits.contains(bytes[index]), word.count(where: { $0 == UInt8(ascii: "-") }) > 1 {
      throw Foreign(line: line, part: "a date")
    }
    index = word.endIndex - 1
    // The parser takes a quote inside a word for a part of it, and what follows for more.
    if word.endIndex < bytes.count, Self.quotes.contains(bytes[word.endIndex]) {
      throw Foreign(line: line, part: "a quote inside a word")
    }
  }

  /// Goes to the closing quote of a text, or before the end of the line if there is none.
  private mutating func skipQuoted(by quote: UInt8) throws(Foreign) {
    if bytes[index...].starts(with: [quote, quote, quote]) {
      throw Foreign(line: line, part: "a text of several lines")
    }
    let hasEscapes = quote == UInt8(ascii: "\"")
    while index + 1 < bytes.count, bytes[index + 1] != Self.newline {
      index += 1
      if bytes[index] == quote { return }
      if hasEscapes, bytes[index] == UInt8(ascii: "\\"), index + 1 < bytes.count { index += 1 }
    }
  }
}
