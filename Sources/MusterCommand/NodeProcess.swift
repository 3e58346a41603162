import Muster
import MusterSystem
import Synchronization

/// What a command notes of the events of a node.
package protocol NodeSummary: Sendable {
  /// Whether the node has ended.
  var hasEnded: Bool { get set }
  mutating func note(_ event: EventRecord)
}

/// A `muster join --json` in a process of its own: a summary of its events, and commands to it.
package final class NodeProcess<Summary: NodeSummary>: Sendable {
  private let process: ChildProcess
  private let input: Int32
  private let state: Mutex<Summary>

  package var id: pid_t { process.id }
  package var summary: Summary { state.withLock { $0 } }

  /// Starts a program found in `PATH`. The settings of the node are the arguments and `variables`,
  /// and none of the user's.
  package init(
    _ program: String, _ arguments: [String], variables: [String: String] = [:], summary: Summary
  ) throws(MusterError) {
    let output = try Self.pipeEnds()
    let input = try Self.pipeEnds()
    let process = ChildProcess.start(
      program, arguments, environment: Self.environment(variables), input: input.reading,
      output: output.writing)
    close(output.writing)
    close(input.reading)
    guard let process else {
      close(output.reading)
      close(input.writing)
      throw MusterError("cannot start a node", hint: "too many processes are running")
    }
    self.process = process
    self.input = input.writing
    state = Mutex(summary)
    Task.detached { [self] in
      for await line in LineReader.lines(of: output.reading) {
        guard let event = EventRecord(json: line) else { continue }
        state.withLock { $0.note(event) }
      }
      state.withLock { $0.hasEnded = true }
      close(output.reading)
    }
  }

  deinit { close(input) }

  /// Sends a command, which a node that has ended does not receive.
  package func send(_ command: Command) {
    let line = Array((command.json + "\n").utf8)
    _ = line.withUnsafeBytes { write(input, $0.baseAddress, $0.count) }
  }

  /// Ends the node; kills it after `seconds`.
  package func stop(within seconds: Int) { process.stop(within: seconds) }

  /// The exit code of a node that ended without `stop`; nil while the node runs, and after the code
  /// has been returned once.
  package func exitCode() -> Int32? { process.exitCode() }

  private static func environment(_ variables: [String: String]) -> [String: String] {
    ProcessEnvironment.variables.filter { !$0.key.hasPrefix("MUSTER_") }
      .merging(variables) { $1 }.merging(["MUSTER_CONFIG": "/dev/null"]) { $1 }
  }

  /// A pipe whose ends other child processes do not inherit.
  private static func pipeEnds() throws(MusterError) -> (reading: Int32, writing: Int32) {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else {
      throw MusterError("cannot make a pipe", hint: "too many files are open")
    }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (ends[0], ends[1])
  }
}
