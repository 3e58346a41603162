import MusterBase

/// One line of text on its way from the keyboard, as the bytes of a raw terminal make it.
struct LineEditor {
  enum Outcome: Equatable {
    case editing
    case sent(String)
    case left
  }

  private var bytes: [UInt8] = []

  private static let (controlD, controlH, controlU) = (0x04 as UInt8, 0x08 as UInt8, 0x15 as UInt8)
  private static let (lineFeed, carriageReturn) = (0x0A as UInt8, 0x0D as UInt8)
  private static let (escape, delete) = (0x1B as UInt8, 0x7F as UInt8)

  init() {}

  /// The line, safe to show. While a character is on its way a mark stands for it.
  func shown(cursor: String) -> String {
    // The mark keeps a space at the end, which would be taken away otherwise.
    DisplayText.sanitized(
      String(decoding: bytes, as: UTF8.self) + cursor, limit: 2 * Limits.textBytes)
  }

  /// Takes in what came at once: one key, or what was pasted.
  mutating func take(_ input: [UInt8]) -> Outcome {
    // A key such as an arrow also begins with the byte of Esc, and comes as a whole.
    if input.first == Self.escape { return input.count == 1 ? .left : .editing }
    for (index, byte) in input.enumerated() {
      switch byte {
      case Self.lineFeed, Self.carriageReturn:
        // In the middle of a paste it is no Enter: the rest would be taken for keys.
        if index == input.count - 1 { return .sent(text) }
        append(0x20)
      case Self.delete, Self.controlH: removeLast()
      case Self.controlU: bytes = []
      case Self.controlD where bytes.isEmpty: return .left
      case 0x09: append(0x20)
      case 0x20...: append(byte)
      default: break
      }
    }
    return .editing
  }

  private var text: String {
    DisplayText.sanitized(String(decoding: bytes, as: UTF8.self), limit: Limits.textBytes)
  }

  private mutating func append(_ byte: UInt8) {
    if bytes.count < Limits.textBytes { bytes.append(byte) }
  }

  private mutating func removeLast() {
    var text = String(decoding: bytes, as: UTF8.self)
    if !text.isEmpty { text.removeLast() }
    bytes = Array(text.utf8)
  }
}
