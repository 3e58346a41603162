import Muster
import MusterBase
import MusterSystem
import MusterView

/// The JSON interface: events on standard output and commands on standard input, with one JSON
/// object per line.
struct JSONLines: Sendable {
  let session: Session
  let output: OutputWriter
  let stop: @Sendable () -> Void
  private let isJournalled: Bool

  init(session: Session, output: OutputWriter, stop: @escaping @Sendable () -> Void) {
    (self.session, self.output, self.stop) = (session, output, stop)
    isJournalled = Journal.receives(STDOUT_FILENO)
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
    for await event in session.events {
      // The stream keeps the latest ones meanwhile, and says how many it has dropped.
      await output.waitForRoom()
      write(event)
    }
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

  /// Writes an event, unless it is a message to one member and the journal would show it to all who
  /// administer the machine.
  private func write(_ event: TimedEvent) {
    if isJournalled, case .message(_, let message) = event.event, message.to != nil { return }
    write(event.json)
  }

  private func write(_ value: JSONValue) { output.write(Array(value.text.utf8) + [0x0A]) }
}
