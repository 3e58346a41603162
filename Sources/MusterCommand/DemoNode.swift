import Glibc
import Muster
import MusterBase
import MusterCrypto
import Synchronization

/// One node process of the demo, with the state reported by its events.
final class DemoNode: Sendable {
  /// The state of a node, as the board displays it.
  struct Report: Sendable {
    var id: String?
    var page: String?
    var names: [String: String] = [:]
    var firstFrames: [String: Double] = [:]
    var peers: [StatisticsRecord.Peer] = []
    var cpu = 0.0
    var memory = 0.0
    var isInCall = false
    var hasEnded = false
  }

  let part: Demo.Part
  private let process: ChildProcess
  private let state = Mutex(Report())

  private init(part: Demo.Part, process: ChildProcess) {
    self.part = part
    self.process = process
  }

  var report: Report { state.withLock { $0 } }

  /// A random passphrase per run, so that two demos on one machine cannot join the same channel.
  private static let passphrase: String = {
    var entropy = Entropy.system
    return Hex.encode(entropy.bytes(16))
  }()

  static func start(_ part: Demo.Part, data: String) throws -> DemoNode {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else {
      throw MusterError("cannot make a pipe", hint: "too many files are open")
    }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    setenv("MUSTER_PASSPHRASE", passphrase, 1)
    var arguments = [
      "join", Demo.channel, "--call", "--json", "--name", part.name, "--video", part.video,
      "--audio", part.audio, "--speaker", "none", "--interface", "lo", "--data", data,
      "--max-video", "640x360",
    ]
    if !part.hasPage { arguments.append("--no-view") }
    let process = ChildProcess.start("/proc/self/exe", arguments, output: ends[1])
    close(ends[1])
    guard let process else {
      close(ends[0])
      throw MusterError("cannot start a node", hint: "too many processes are running")
    }
    let node = DemoNode(part: part, process: process)
    node.read(ends[0])
    return node
  }

  func stop() { process.stop(within: 2) }

  /// The exit code of a node that ended without `stop()`; nil while the node runs, and after the
  /// code has been returned once.
  func exitCode() -> Int32? { process.exitCode() }

  private func read(_ descriptor: Int32) {
    Task.detached { [self] in
      for await line in LineReader.lines(of: descriptor) {
        guard let event = EventRecord(json: line) else { continue }
        state.withLock { $0.note(event) }
      }
      state.withLock { $0.hasEnded = true }
      close(descriptor)
    }
  }
}

extension DemoNode.Report {
  fileprivate mutating func note(_ event: EventRecord) {
    switch event.body {
    case .ready(let ready):
      id = ready.id
      page = ready.view
    case .memberJoined(let member), .memberUpdated(let member):
      if member.member != id { names[member.member] = member.name }
    case .memberLeft(let member, _): names[member.member] = nil
    case .callState(let call): isInCall = call.state == "connected"
    case .firstFrame(let frame): firstFrames[frame.member] = frame.after
    case .statistics(let statistics):
      peers = statistics.peers
      cpu = statistics.node.cpu
      memory = statistics.node.rssMB
    default: break
    }
  }
}
