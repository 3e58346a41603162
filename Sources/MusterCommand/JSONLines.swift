import Glibc
import Muster
import MusterBase
import MusterView

/// The JSON interface: events on standard output and commands on standard input, with one JSON
/// object per line.
struct JSONLines: Sendable {
  let session: Session
  let stop: @Sendable () -> Void

  init(session: Session, stop: @escaping @Sendable () -> Void) {
    self.session = session
    self.stop = stop
  }

  func run() async {
    write(session.node.readyEvent(page: session.page?.url).json)
    for notice in session.notices {
      write(
        TimedEvent(secondsSinceStart: session.node.secondsToReady, event: .warning(notice)))
    }
    // The node continues after the end of its input: a script may send no commands and only
    // read events.
    let commands = Task {
      for await line in LineReader.lines(of: STDIN_FILENO) { await perform(line) }
    }
    for await event in session.events { write(event) }
    commands.cancel()
  }

  private func perform(_ line: [UInt8]) async {
    guard !line.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }) else { return }
    do {
      let command = try Command(json: line)
      if command == .quit { return stop() }
      try await session.node.perform(command)
    } catch {
      let echo = String(decoding: line.prefix(512), as: UTF8.self)
      write(timed(.error(error, command: echo)))
    }
  }

  private func timed(_ event: Event) -> TimedEvent {
    TimedEvent(secondsSinceStart: session.node.secondsSinceStart, event: event)
  }

  private func write(_ event: TimedEvent) { write(event.json) }

  /// Writes each line unbuffered and, where possible, with a single system call, so that lines of
  /// concurrent tasks do not interleave.
  private func write(_ value: JSONValue) {
    var bytes = Array(value.text.utf8)
    bytes.append(0x0A)
    var offset = 0
    while offset < bytes.count {
      let count = bytes[offset...].withUnsafeBytes {
        Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count)
      }
      if count < 0 {
        if errno == EINTR || errno == EAGAIN { continue }
        return stop()  // the reader has closed its end
      }
      offset += count
    }
  }
}
