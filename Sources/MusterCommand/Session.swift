import Glibc
import Muster
import MusterView

/// A running node with its command-line interface, from start to orderly shutdown.
struct Session: Sendable {
  let node: MusterNode
  /// The node's events, including up to 256 events before the subscription.
  let events: AsyncStream<TimedEvent>
  let page: CallPage?
  let seconds: Double?
  let notices: [MusterError]
  let usesTerminal: Bool

  /// Runs until a signal arrives, the user enters `quit`, or the time given with `--for` has
  /// passed.
  func run() async {
    let (node, page) = (node, page)
    let stop: @Sendable () -> Void = {
      Task {
        await page?.stop()
        await node.stop()
        // The node has left and the store is written. Only a blocked standard output can still
        // delay the exit, but must not keep the process alive.
        try? await Task.sleep(for: .milliseconds(300))
        _exit(0)
      }
    }
    Interruption.catchSignals(then: stop)
    if let seconds {
      Task {
        try? await Task.sleep(for: .seconds(seconds))
        stop()
      }
    }
    if usesTerminal {
      await TerminalView(session: self, stop: stop).run()
    } else {
      await JSONLines(session: self, stop: stop).run()
    }
  }
}
