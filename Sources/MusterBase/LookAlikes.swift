/// Compares texts as people see them, by Unicode Technical Standard 39.
public enum LookAlikes {
  /// A text that is the same for texts that look alike: without invisible characters, marks on
  /// letters and spaces, in lower case, and with letters and digits replaced by the ASCII ones that
  /// they look like. It is for comparison only, not for display.
  public static func skeleton(_ text: String) -> String {
    // Both cases of a letter can look like others: `I` like `l`, and `m` like `rn`.
    replaced(replaced(text).lowercased())
  }

  /// Whether a text can be taken for an id of 16 or 64 hex digits.
  public static func resemblesID(_ text: String) -> Bool {
    // Most names have a letter that no hex digit looks like.
    guard text.utf8.count >= 16, text.utf8.allSatisfy({ $0 >= 0x80 || mayBeDigit($0) }) else {
      return false
    }
    let skeleton = skeleton(text)
    return (skeleton.utf8.count == 16 || skeleton.utf8.count == 64)
      && skeleton.utf8.allSatisfy { digits.contains($0) }
  }

  /// Whether an ASCII character is a space or sign, or looks like a hex digit.
  private static func mayBeDigit(_ byte: UInt8) -> Bool {
    let letter = byte | 0x20
    guard (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(letter) else { return true }
    return digits.contains(letter) || byte == UInt8(ascii: "I")
  }

  /// The skeletons of the hex digits.
  private static let digits = Array(skeleton("0123456789abcdef").utf8)

  private static func replaced(_ text: String) -> String {
    var result = String.UnicodeScalarView()
    for scalar in text.unicodeScalars where !isUnseen(scalar) {
      if let like = likeness(of: scalar) {
        result.append(contentsOf: like.unicodeScalars)
      } else {
        result.append(scalar)
      }
    }
    return String(result)
  }

  private static func isUnseen(_ scalar: Unicode.Scalar) -> Bool {
    guard !scalar.isASCII else { return scalar == " " }
    let properties = scalar.properties
    guard !properties.isDefaultIgnorableCodePoint, !properties.isWhitespace else { return true }
    switch properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format, .control: return true
    default: return false
    }
  }

  /// The characters of the table with their texts, sorted by character.
  private static let letters: [(scalar: UInt32, like: String)] = {
    var letters: [(scalar: UInt32, like: String)] = []
    for line in table.split(separator: "\n") {
      let words = line.split(separator: " ")
      for word in words.dropFirst() {
        if let scalar = UInt32(word, radix: 16) { letters.append((scalar, String(words[0]))) }
      }
    }
    return letters.sorted { $0.scalar < $1.scalar }
  }()

  private static func likeness(of scalar: Unicode.Scalar) -> String? {
    var (low, high) = (0, letters.count)
    while low < high {
      let middle = (low + high) / 2
      if letters[middle].scalar < scalar.value { low = middle + 1 } else { high = middle }
    }
    return low < letters.count && letters[low].scalar == scalar.value ? letters[low].like : nil
  }
}
