import CQREncode
import MusterSystem

/// QR codes that a phone's camera can read from a terminal.
enum QRCode {
  /// The width of the empty border in modules, as required by ISO/IEC 18004.
  private static let quietZone = 4

  /// The code drawn with half-block characters, two rows of modules per line; nil if the text is
  /// too long.
  ///
  /// Both colours are set by number from the 256-colour palette, so that the code looks the same on
  /// dark and light terminals; themes redefine only the first sixteen colours.
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

  /// The number of terminal columns that the code needs; nil if the text is too long.
  static func columns(_ text: String) -> Int? {
    Modules(text).map { $0.width + 2 * quietZone }
  }

  /// The modules of a code; positions outside the code are light.
  private struct Modules {
    let width: Int
    private let bytes: [UInt8]

    init?(_ text: String) {
      // The lowest error correction level keeps the code small, and a code on a screen is not
      // damaged.
      guard let code = QRcode_encodeString8bit(text, 0, QR_ECLEVEL_L) else { return nil }
      defer { QRcode_free(code) }
      width = Int(code.pointee.width)
      bytes = Array(UnsafeBufferPointer(start: code.pointee.data, count: width * width))
    }

    func isDark(_ x: Int, _ y: Int) -> Bool {
      guard (0..<width).contains(x), (0..<width).contains(y) else { return false }
      return bytes[y * width + x] & 1 == 1  // the other bits describe the code's structure
    }
  }
}
