import MusterBase

/// A single-line editor for a terminal in raw mode.
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

  /// The sanitised line for display; a replacement character stands for an incomplete UTF-8
  /// sequence.
  func shown(cursor: String) -> String {
    // The cursor protects a trailing space, which sanitising would otherwise remove.
    DisplayText.sanitized(
      String(decoding: bytes, as: UTF8.self) + cursor, limit: 2 * Limits.textBytes)
  }

  /// Processes the bytes of one read: a single key, or pasted text.
  mutating func take(_ input: [UInt8]) -> Outcome {
    // Keys such as arrows send sequences that also begin with Esc, but arrive in one read.
    if input.first == Self.escape { return input.count == 1 ? .left : .editing }
    for (index, byte) in input.enumerated() {
      switch byte {
      case Self.lineFeed, Self.carriageReturn:
        // Within pasted text a line end must not act as Enter, or the rest would be interpreted as
        // keys.
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
