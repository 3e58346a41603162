import ArgumentParser
import Muster
import MusterSystem
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

  /// How long the last output may take once the node has left.
  private static let lastOutputTime = Duration.milliseconds(300)

  /// Runs until a signal arrives, the user enters `quit`, the time given with `--for` has passed,
  /// or nobody reads standard output any more. Throws exit code 1 if the last output was lost
  /// because writing failed.
  func run() async throws(ExitCode) {
    let (requests, request) = AsyncStream.makeStream(of: Void.self)
    let stop: @Sendable () -> Void = { request.yield() }
    let output = OutputWriter(STDOUT_FILENO) { trouble in
      standardError("muster: standard output: \(trouble)")
      if trouble == .closed { stop() }
    }
    Interruption.catchSignals(then: stop)
    let timer = seconds.map { seconds in
      Task {
        try await Task.sleep(for: .seconds(seconds))
        stop()
      }
    }
    let shown = Task {
      if usesTerminal {
        await TerminalView(session: self, output: output, stop: stop).run()
      } else {
        await JSONLines(session: self, output: output, stop: stop).run()
      }
      stop()
    }
    for await _ in requests { break }
    timer?.cancel()
    await page?.stop()
    await node.stop()
    // The node has left and the store is written. A reader that has stopped must not delay the end.
    let end = ContinuousClock.now + Self.lastOutputTime
    let limit = Task {
      try await Task.sleep(until: end, clock: .continuous)
      output.close()
    }
    await shown.value
    limit.cancel()
    await output.drain(until: end)
    if output.trouble != nil { throw ExitCode(1) }
  }
}
