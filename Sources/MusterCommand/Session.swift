import Glibc
import Logging
import Muster
import MusterView
import ServiceLifecycle
import UnixSignals

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
  func run() async throws {
    let group = ServiceGroup(
      configuration: .init(
        services: [
          .init(
            service: NodeService(session: self),
            successTerminationBehavior: .gracefullyShutdownGroup)
        ],
        gracefulShutdownSignals: [.sigint, .sigterm],
        logger: Logger(label: "muster")))
    try await group.run()
  }
}

/// A service for the node, which ends with the stream of the node's events.
private struct NodeService: Service {
  let session: Session

  func run() async throws {
    let node = session.node
    let page = session.page
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
    if let seconds = session.seconds {
      Task {
        try? await Task.sleep(for: .seconds(seconds))
        stop()
      }
    }
    await withGracefulShutdownHandler {
      if session.usesTerminal {
        await TerminalView(session: session, stop: stop).run()
      } else {
        await JSONLines(session: session, stop: stop).run()
      }
    } onGracefulShutdown: {
      stop()
    }
  }
}
