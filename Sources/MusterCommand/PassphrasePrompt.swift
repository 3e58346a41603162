import MusterBase
import MusterSystem

/// Asks for a passphrase at the terminal, whatever standard input and output are.
enum PassphrasePrompt {
  private static let (controlC, controlD, controlU) = (0x03 as UInt8, 0x04 as UInt8, 0x15 as UInt8)
  private static let (controlH, delete) = (0x08 as UInt8, 0x7F as UInt8)
  private static let (lineFeed, carriageReturn) = (0x0A as UInt8, 0x0D as UInt8)

  /// What the user types, without showing it; nil if there is no terminal.
  ///
  /// Throws if the user cancels with Ctrl-C or Ctrl-D. The terminal raises no signals meanwhile,
  /// since one that ended the process would leave it without echo.
  static func ask(_ prompt: String) throws(MusterError) -> String? {
    guard isatty(STDERR_FILENO) == 1 else { return nil }
    let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
    guard terminal >= 0 else { return nil }
    defer { close(terminal) }
    var saved = termios()
    guard tcgetattr(terminal, &saved) == 0 else { return nil }
    var silent = saved
    silent.c_lflag &= ~tcflag_t(ICANON | ECHO | ISIG)
    tcsetattr(terminal, TCSAFLUSH, &silent)
    defer {
      tcsetattr(terminal, TCSAFLUSH, &saved)
      show("\n", on: terminal)
    }
    show(prompt, on: terminal)
    return try line(from: terminal)
  }

  private static func line(from terminal: Int32) throws(MusterError) -> String {
    var bytes: [UInt8] = []
    while true {
      var byte: UInt8 = 0
      let count = read(terminal, &byte, 1)
      if count < 0 && errno == EINTR { continue }
      switch byte {
      case _ where count <= 0, controlC, controlD:
        throw MusterError("the command was cancelled", hint: "nothing was changed")
      case lineFeed, carriageReturn: return String(decoding: bytes, as: UTF8.self)
      case delete, controlH:
        var text = String(decoding: bytes, as: UTF8.self)
        if !text.isEmpty { text.removeLast() }
        bytes = Array(text.utf8)
      case controlU: bytes = []
      default: bytes.append(byte)
      }
    }
  }

  private static func show(_ text: String, on terminal: Int32) {
    let bytes = Array(text.utf8)
    _ = write(terminal, bytes, bytes.count)
  }
}
