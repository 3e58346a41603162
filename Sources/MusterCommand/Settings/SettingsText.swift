/// A reader of the text of a settings file.
///
/// The text is TOML (toml.io, version 1.0.0) as far as settings need it: a `key = value` on each
/// line, where a value is a text in quotes, a decimal number, `true`, `false`, or a list of these.
/// Tables, dates and texts of several lines are refused.
struct SettingsText {
  enum Value: Equatable {
    case text(String)
    case integer(Int)
    case number(Double)
    case bool(Bool)
    case list([Value])

    /// The text of a value that is one.
    var text: String? { if case .text(let text) = self { text } else { nil } }
  }

  /// A part of a text that no setting has.
  struct Foreign: Error, Equatable {
    /// The number of its line, from 1.
    let line: Int
    /// The part, in words. They repeat nothing of a value, which may be a passphrase.
    let part: String
    var hint = "write one setting a line, such as name = \"Ada\""
  }

  private let bytes: [UInt8]
  private var index = 0
  private var line = 1

  /// The bytes of bare keys, numbers and truth values; a dotted key is one that no setting has.
  private static let word = Set(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.".utf8)
  /// The bytes that may follow a number or a truth value.
  private static let ends = Set(" \t\r\n#,]".utf8)
  private static let quotes: [UInt8] = [UInt8(ascii: "\""), UInt8(ascii: "'")]
  private static let newline = UInt8(ascii: "\n")
  /// The escapes of one letter, with what they stand for.
  private static let escapes: [UInt8: UInt8] = [
    UInt8(ascii: "b"): 8, UInt8(ascii: "t"): 9, UInt8(ascii: "n"): 10, UInt8(ascii: "f"): 12,
    UInt8(ascii: "r"): 13, UInt8(ascii: "\""): UInt8(ascii: "\""),
    UInt8(ascii: "\\"): UInt8(ascii: "\\"),
  ]

  private init(_ text: String) {
    bytes = Array(text.utf8)
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { index = 3 }  // a byte order mark
  }

  /// The settings of a text, in its order, or the first part that no setting has.
  static func settings(_ text: String) throws(Foreign) -> [(key: String, value: Value)] {
    var reader = SettingsText(text)
    var settings: [(key: String, value: Value)] = []
    var lines: [String: Int] = [:]
    while try reader.skipToContent() {
      let key = try reader.key()
      if let first = lines.updateValue(reader.line, forKey: key) {
        throw Foreign(
          line: reader.line, part: "a setting for the second time",
          hint: "remove this line, or line \(first)")
      }
      settings.append((key, try reader.value()))
      reader.skipSpace()
      if let next = reader.next, next != Self.newline, next != UInt8(ascii: "#") {
        throw reader.unexpected(next)
      }
    }
    return settings
  }

  // MARK: Keys and values

  private mutating func key() throws(Foreign) -> String {
    guard let first = next else { throw foreign("no key") }
    if first == UInt8(ascii: "[") { throw foreign("a table") }
    let key: String
    if Self.quotes.contains(first) {
      key = try quoted(by: first)
    } else if Self.word.contains(first) {
      key = word()
    } else {
      throw unexpected(first)
    }
    skipSpace()
    guard next == UInt8(ascii: "=") else {
      throw next.map(unexpected) ?? foreign("a key without a value")
    }
    index += 1
    skipSpace()
    return key
  }

  private mutating func value() throws(Foreign) -> Value {
    guard let first = next, first != Self.newline, first != UInt8(ascii: "#") else {
      throw foreign("a key without a value")
    }
    if first == UInt8(ascii: "[") { return .list(try list()) }
    return try scalar(first)
  }

  /// The values of a list, which may go on over several lines; none of them is a list.
  private mutating func list() throws(Foreign) -> [Value] {
    index += 1
    var values: [Value] = []
    while try skipToContent() {
      guard let first = next, first != UInt8(ascii: "]") else { break }
      values.append(try scalar(first))
      guard try skipToContent(), let end = next else { break }
      if end == UInt8(ascii: ",") {
        index += 1
      } else if end != UInt8(ascii: "]") {
        throw unexpected(end)
      }
    }
    guard next == UInt8(ascii: "]") else { throw foreign("a list without an end") }
    index += 1
    return values
  }

  private mutating func scalar(_ first: UInt8) throws(Foreign) -> Value {
    if Self.quotes.contains(first) { return .text(try quoted(by: first)) }
    guard Self.word.contains(first) else { throw unexpected(first) }
    let word = word()
    if let next, !Self.ends.contains(next) { throw unexpected(next) }
    if word == "true" || word == "false" { return .bool(word == "true") }
    if let number = Self.number(word) { return number }
    let isDate = word.first?.isNumber == true && word.count(where: { $0 == "-" }) > 1
    throw foreign(
      isDate ? "a date" : "a value that is no text in quotes, no number of 64 bits, true or false")
  }

  /// A decimal number, or `inf` or `nan`; nil for another word, and for an integer of more than 64
  /// bits.
  private static func number(_ word: String) -> Value? {
    let isSigned = word.hasPrefix("+") || word.hasPrefix("-")
    let magnitude = isSigned ? word.dropFirst() : word[...]
    let plain = word.filter { $0 != "_" }
    if magnitude == "inf" || magnitude == "nan" { return Double(plain).map { .number($0) } }
    let parts = magnitude.split(
      maxSplits: 1, omittingEmptySubsequences: false, whereSeparator: "eE".contains)
    let decimals = parts[0].split(separator: ".", omittingEmptySubsequences: false)
    let exponent = parts.dropFirst().map {
      $0.hasPrefix("+") || $0.hasPrefix("-") ? $0.dropFirst() : $0
    }
    guard decimals.count <= 2, (decimals + exponent).allSatisfy(isDigits),
      decimals[0] == "0" || !decimals[0].hasPrefix("0")
    else { return nil }
    if decimals.count == 1, exponent.isEmpty { return Int(plain).map { .integer($0) } }
    return Double(plain).map { .number($0) }
  }

  /// Whether a text consists of digits, with single underscores between them.
  private static func isDigits(_ text: Substring) -> Bool {
    text.split(separator: "_", omittingEmptySubsequences: false).allSatisfy {
      !$0.isEmpty && $0.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains)
    }
  }

  // MARK: Texts

  /// A text in one line, after its opening quote: literal in single quotes, with escapes in double
  /// ones.
  private mutating func quoted(by quote: UInt8) throws(Foreign) -> String {
    if bytes[index...].starts(with: [quote, quote, quote]) {
      throw foreign("a text of several lines")
    }
    index += 1
    var text: [UInt8] = []
    while let byte = next, byte != Self.newline {
      index += 1
      if byte == quote { return String(decoding: text, as: UTF8.self) }
      if byte == UInt8(ascii: "\\"), quote == UInt8(ascii: "\"") {
        text += try escape()
      } else if byte < 0x20 && byte != 9 || byte == 0x7F {
        throw foreign(byte == 0 ? "a zero byte" : "a control character")
      } else {
        text.append(byte)
      }
    }
    throw foreign("a text without a closing quote")
  }

  /// What an escape stands for, in UTF-8, after its backslash.
  private mutating func escape() throws(Foreign) -> [UInt8] {
    let unknown = foreign("a backslash that begins no escape")
    guard let letter = next else { throw unknown }
    index += 1
    if let byte = Self.escapes[letter] { return [byte] }
    let length = letter == UInt8(ascii: "u") ? 4 : letter == UInt8(ascii: "U") ? 8 : 0
    let digits = String(decoding: bytes[index...].prefix(length), as: UTF8.self)
    guard length > 0, digits.utf8.count == length, digits.allSatisfy(\.isHexDigit),
      let scalar = UInt32(digits, radix: 16).flatMap(Unicode.Scalar.init)
    else { throw unknown }
    // Such a text would end there, as a name of the C library does.
    guard scalar.value != 0 else { throw foreign("a zero byte") }
    index += length
    return Array(String(scalar).utf8)
  }

  // MARK: Bytes

  /// The next byte; nil at the end.
  private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

  private mutating func word() -> String {
    let word = bytes[index...].prefix(while: Self.word.contains)
    index = word.endIndex
    return String(decoding: word, as: UTF8.self)
  }

  private mutating func skipSpace() {
    while let byte = next {
      let isLineEnd =
        byte == UInt8(ascii: "\r") && bytes[index...].dropFirst().first == Self.newline
      guard byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || isLineEnd else { return }
      index += 1
    }
  }

  /// Goes over spaces, ends of lines and comments; false at the end of the text.
  private mutating func skipToContent() throws(Foreign) -> Bool {
    while true {
      skipSpace()
      switch next {
      case nil: return false
      case Self.newline:
        index += 1
        line += 1
      case UInt8(ascii: "#"):
        while let byte = next, byte != Self.newline {
          if byte == 0 { throw foreign("a zero byte") }
          index += 1
        }
      default: return true
      }
    }
  }

  private func foreign(_ part: String) -> Foreign { Foreign(line: line, part: part) }

  private func unexpected(_ byte: UInt8) -> Foreign {
    if Self.quotes.contains(byte) { return foreign("a quote inside a word") }
    if Self.word.contains(byte) { return foreign("more than one setting") }
    if byte == Self.newline { return foreign("a key without a value") }
    let isShown = (0x21...0x7E).contains(byte)
    let part = isShown ? String(Unicode.Scalar(byte)) : "a special character"
    return foreign("\(part) outside quotes")
  }
}
