import CQREncode
import Glibc

/// Texts as QR codes that a phone's camera reads off a terminal.
enum QRCode {
  /// Empty modules around the code, as ISO/IEC 18004 asks for.
  private static let quietZone = 4

  /// The code in half blocks, two of its rows a line; nil for a text that is too long for one.
  ///
  /// Both colours are set, black and white by number, so that it is the same on dark terminals, on
  /// light ones, and whatever their theme makes of the first sixteen colours.
  static func lines(_ text: String) -> [String]? {
    guard let modules = Modules(text) else { return nil }
    let side = modules.width + 2 * quietZone
    func isDark(_ x: Int, _ y: Int) -> Bool { modules.isDark(x - quietZone, y - quietZone) }
    return stride(from: 0, to: side, by: 2).map { y in
      var line = "\u{1B}[38;5;16;48;5;231m"
      for x in 0..<side {
        switch (isDark(x, y), isDark(x, y + 1)) {
        case (true, true): line += "█"
        case (true, false): line += "▀"
        case (false, true): line += "▄"
        case (false, false): line += " "
        }
      }
      return line + "\u{1B}[0m"
    }
  }

  /// Columns that the lines take.
  static func columns(_ text: String) -> Int? {
    Modules(text).map { $0.width + 2 * quietZone }
  }

  /// The squares of a code; outside of it all are light.
  private struct Modules {
    let width: Int
    private let bytes: [UInt8]

    init?(_ text: String) {
      // The lowest level of correction: a screen has no dirt on it, and the code stays small.
      guard let code = QRcode_encodeString8bit(text, 0, QR_ECLEVEL_L) else { return nil }
      defer { QRcode_free(code) }
      width = Int(code.pointee.width)
      bytes = Array(UnsafeBufferPointer(start: code.pointee.data, count: width * width))
    }

    func isDark(_ x: Int, _ y: Int) -> Bool {
      guard (0..<width).contains(x), (0..<width).contains(y) else { return false }
      return bytes[y * width + x] & 1 == 1  // the other bits are about the code's structure
    }
  }
}
