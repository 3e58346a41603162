import MusterSystem

/// The terminal in raw mode, without line editing and echo; `restore()` restores the former mode.
struct RawTerminal {
  private let saved: termios
  private let output: OutputWriter

  init(_ output: OutputWriter) {
    self.output = output
    var state = termios()
    tcgetattr(STDIN_FILENO, &state)
    saved = state
    state.c_lflag &= ~tcflag_t(ICANON | ECHO)
    tcsetattr(STDIN_FILENO, TCSANOW, &state)
    // Switch to the alternate screen, hide the cursor, and truncate long lines at the right edge.
    write("\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l")
  }

  func restore() {
    write("\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l")
    var state = saved
    tcsetattr(STDIN_FILENO, TCSANOW, &state)
  }

  /// The size in columns and rows; 80 by 24 if the terminal does not report a size.
  static var size: (columns: Int, rows: Int) {
    var size = winsize()
    guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0
    else { return (80, 24) }
    return (Int(size.ws_col), Int(size.ws_row))
  }

  /// Shows these lines in place of all others; not where the user has stopped the terminal with
  /// Ctrl-S for so long that no more can wait.
  func show(_ lines: [String]) {
    let text = lines.map { $0 + "\u{1B}[K" }.joined(separator: "\r\n")
    write("\u{1B}[H" + text + "\u{1B}[J")
  }

  /// The bytes read from the keyboard, one element per read, so that a multi-byte escape sequence
  /// normally arrives whole.
  static func keys() -> AsyncStream<[UInt8]> {
    let (stream, continuation) = AsyncStream<[UInt8]>.makeStream(
      bufferingPolicy: .bufferingNewest(64))
    let box = Unmanaged.passRetained(Box(continuation))
    var thread = pthread_t()
    pthread_create(
      &thread, nil,
      { raw in
        guard let raw else { return nil }
        let keys = Unmanaged<Box>.fromOpaque(raw).takeRetainedValue().continuation
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
          let count = read(STDIN_FILENO, &buffer, buffer.count)
          if count > 0 {
            keys.yield(Array(buffer.prefix(count)))
          } else if count == 0 || errno != EINTR {
            break
          }
        }
        keys.finish()
        return nil
      }, box.toOpaque())
    pthread_detach(thread)
    return stream
  }

  private final class Box {
    let continuation: AsyncStream<[UInt8]>.Continuation

    init(_ continuation: AsyncStream<[UInt8]>.Continuation) { self.continuation = continuation }
  }

  private func write(_ text: String) { output.write(Array(text.utf8)) }
}
