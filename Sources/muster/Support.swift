import Glibc

/// Clocks for display.
enum Clocks {
  /// Milliseconds since 1970.
  static var wallMilliseconds: Double {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Double(time.tv_sec) * 1000 + Double(time.tv_nsec) / 1e6
  }
}

/// The desktop's browser.
enum Browser {
  static var isAtHand: Bool { getenv("DISPLAY") != nil || getenv("WAYLAND_DISPLAY") != nil }

  /// Opens a page where there is a desktop; nothing happens where there is none.
  static func open(_ url: String) {
    guard isAtHand else { return }
    _ = ChildProcess.start("xdg-open", [url], output: nil)
  }
}
