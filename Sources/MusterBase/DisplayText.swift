/// Sanitises untrusted names and messages of other nodes before display.
public enum DisplayText {
  /// Replaces control characters, bidirectional controls and line separators by U+FFFD, trims white
  /// space, and keeps at most `limit` UTF-8 bytes without splitting a scalar.
  public static func sanitized(_ text: String, limit: Int) -> String {
    if isPlain(text), text.utf8.count <= limit { return text }
    var result = ""
    var used = 0
    for scalar in text.unicodeScalars.prefix(limit) {
      let safe: Unicode.Scalar = isUnsafe(scalar) ? "\u{FFFD}" : scalar
      let width = UTF8.width(safe)
      guard used + width <= limit else { break }
      used += width
      result.unicodeScalars.append(safe)
    }
    while result.first?.isWhitespace == true { result.removeFirst() }
    while result.last?.isWhitespace == true { result.removeLast() }
    return result
  }

  /// Whether a text is printable ASCII without a space at its ends and needs no change. This fast
  /// path covers most names and messages, which are sanitised each time a roster or a history is
  /// read.
  private static func isPlain(_ text: String) -> Bool {
    let bytes = text.utf8
    return bytes.first != 0x20 && bytes.last != 0x20
      && bytes.allSatisfy { (0x20...0x7E).contains($0) }
  }

  private static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7F..<0xA0: true
    // Bidirectional controls (Unicode Standard Annex 9) and the invisible byte order mark can make
    // one name look like another; line separators can forge a line of output.
    case 0x061C, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069, 0x2028, 0x2029, 0xFEFF: true
    default: false
    }
  }

  /// A name reduced to characters that are safe in any file name: ASCII letters, digits, dash and
  /// underscore. Other characters become underscores; the result has at most `limit` characters.
  /// The result for an empty name is `member`.
  public static func fileName(_ text: String, limit: Int = 40) -> String {
    let safe = text.unicodeScalars.prefix(limit).map { scalar -> Character in
      switch scalar {
      case "a"..."z", "A"..."Z", "0"..."9", "-", "_": Character(scalar)
      default: "_"
      }
    }
    return safe.isEmpty ? "member" : String(safe)
  }
}
