import FoundationEssentials
import Glibc
import Muster
import MusterBase
import MusterCrypto
import Synchronization

/// One process of the demo and what its events told.
final class DemoNode: Sendable {
  /// What the board shows of a node.
  struct Report: Sendable {
    var id: String?
    var page: String?
    var names: [String: String] = [:]
    var firstFrames: [String: Double] = [:]
    var peers: [DemoStatistics.Peer] = []
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

  /// A passphrase per run, so that two demos on one machine never meet.
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

  /// The exit code of a node that ended by itself.
  func exitCode() -> Int32? { process.exitCode() }

  private func read(_ descriptor: Int32) {
    Task.detached { [self] in
      for await line in LineReader.lines(of: descriptor) {
        guard let event = try? JSONDecoder().decode(DemoEvent.self, from: Data(line)) else {
          continue
        }
        state.withLock { event.apply(to: &$0) }
      }
      state.withLock { $0.hasEnded = true }
      close(descriptor)
    }
  }
}

/// The fields of events that the demo looks at.
private struct DemoEvent: Decodable {
  var event: String
  var id: String?
  var view: String?
  var member: String?
  var name: String?
  var after: Double?
  var state: String?
  var node: DemoStatistics.Node?
  var peers: [DemoStatistics.Peer]?

  func apply(to report: inout DemoNode.Report) {
    switch event {
    case "ready":
      report.id = id
      report.page = view
    case "member.joined", "member.updated":
      if let member, let name { report.names[member] = name }
    case "member.left":
      if let member { report.names[member] = nil }
    case "call.state": report.isInCall = state == "connected"
    case "media.first-frame":
      if let member, let after { report.firstFrames[member] = after }
    case "stats":
      report.peers = peers ?? []
      report.cpu = node?.cpu ?? 0
      report.memory = node?.rssMB ?? 0
    default: break
    }
  }
}

/// The statistics event, as far as the demo shows it.
enum DemoStatistics {
  struct Node: Decodable, Sendable {
    var cpu: Double
    var rssMB: Double
  }

  struct Peer: Decodable, Sendable {
    var member: String
    var rttMs: Double?
    var received: Direction?
    var latencyMs: Latency?

    enum CodingKeys: String, CodingKey {
      case member, rttMs, latencyMs
      case received = "in"
    }
  }

  struct Direction: Decodable, Sendable {
    var layer: String
    var kbps: Double
    var frames: Int
    var freezes: Int
    var audioLostPercent: Double
  }

  struct Latency: Decodable, Sendable {
    var p50: Double
    var p95: Double
  }
}
