import Logging
import MusterBase
import MusterSystem
import Synchronization

/// One thread at a time looks for room and uses it.
private let standardErrorUse = Mutex(())

/// Writes one line to standard error, cut to what a pipe with room takes at once. It is lost where
/// nobody reads: neither the node nor its end waits for that.
func standardError(_ line: String) {
  let bytes = Array(line.utf8.prefix(Int(PIPE_BUF) - 1)) + [0x0A]
  standardErrorUse.withLock { _ in
    var writable = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
    guard poll(&writable, 1, 0) > 0 else { return }
    _ = write(STDERR_FILENO, bytes, bytes.count)
  }
}

/// The log of a node on standard error.
struct StandardErrorLog: LogHandler {
  var logLevel: Logger.Level
  var metadata = Logger.Metadata()
  private let label: String

  init(label: String, level: Logger.Level) { (self.label, logLevel) = (label, level) }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    let details = metadata.merging(event.metadata ?? [:]) { $1 }
      .sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
    let time = Clocks.timestamp(seconds: Clocks.wallSeconds)
    standardError("\(time) \(event.level) \(label):\(details) \(event.message)")
  }
}
