import MusterSystem

/// ANSI text styles; callers sanitise names and messages first.
package enum Style {
  /// Whether standard output is a terminal; files and pipes receive plain text.
  private static let isShown = isatty(STDOUT_FILENO) == 1

  static func bold(_ text: String) -> String { styled(text, "1") }
  static func dim(_ text: String) -> String { styled(text, "2") }
  static func green(_ text: String) -> String { styled(text, "32") }
  /// The style of warnings.
  static func loud(_ text: String) -> String { styled(text, "1;33") }

  private static func styled(_ text: String, _ code: String) -> String {
    isShown ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
  }

  static func mark(_ isOn: Bool) -> String { isOn ? green("●") : "○" }

  package static func padded(_ text: String, to width: Int) -> String {
    let shown = columns(text) > width - 1 ? prefix(text, columns: width - 2) + "…" : text
    return shown + String(repeating: " ", count: max(0, width - columns(shown)))
  }

  /// Breaks plain text into lines of at most `width` columns, between words where possible.
  static func wrapped(_ text: String, columns width: Int) -> [String] {
    var lines: [String] = []
    var rest = Substring(text)
    while columns(rest) > width {
      let fitting = prefix(rest, columns: max(width, 2))
      let end = fitting.lastIndex(of: " ").map { $0 > rest.startIndex ? $0 : fitting.endIndex }
      let line = rest[..<(end ?? fitting.endIndex)]
      lines.append(String(line))
      rest = rest[line.endIndex...].drop { $0 == " " }
    }
    return lines + [String(rest)]
  }

  /// The longest end of a text that fits into `width` columns.
  static func tail(_ text: String, columns width: Int) -> String {
    var used = 0
    let fitting = text.reversed().prefix { character in
      used += columns(of: character)
      return used <= width
    }
    return String(fitting.reversed())
  }

  /// The longest beginning of a text that fits into `width` columns.
  static func prefix<Text: StringProtocol>(
    _ text: Text, columns width: Int
  ) -> Text.SubSequence {
    var used = 0
    return text.prefix { character in
      used += columns(of: character)
      return used <= width
    }
  }

  static func columns(_ text: some StringProtocol) -> Int {
    text.reduce(0) { $0 + columns(of: $1) }
  }

  /// The width of a character: two columns in the large blocks that are wide by East Asian Width
  /// (UAX #11), otherwise one.
  private static func columns(of character: Character) -> Int {
    switch character.unicodeScalars.first?.value ?? 0 {
    case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
      0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1FAFF, 0x20000...0x3FFFD:
      2
    default: 1
    }
  }
}
