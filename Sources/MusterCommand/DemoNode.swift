import CMusterProcess
import Muster
import MusterBase
import MusterCrypto
import MusterSystem

/// One node process of the demo, with the state reported by its events.
struct DemoNode: Sendable {
  /// The state of a node, as the board displays it.
  struct Report: NodeSummary {
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
  private let process: NodeProcess<Report>

  var report: Report { process.summary }

  /// A random passphrase per run, so that two demos on one machine cannot join the same channel.
  private static let passphrase: String = {
    var entropy = Entropy.system
    return Hex.encode(entropy.bytes(16))
  }()

  /// Starts the node.
  init(_ part: Demo.Part, data: String) throws {
    var arguments = [
      "join", Demo.channel, "--call", "--json", "--name", part.name, "--video", part.video,
      "--audio", part.audio, "--speaker", "none", "--interface", "lo", "--data", data,
      "--max-video", "640x360",
    ]
    if !part.hasPage { arguments.append("--no-view") }
    self.part = part
    process = try NodeProcess(
      String(cString: muster_executable()), arguments,
      variables: ["MUSTER_PASSPHRASE": Self.passphrase], summary: Report())
  }

  func stop() { process.stop(within: 2) }

  /// The exit code of a node that ended without `stop()`; nil while the node runs, and after the
  /// code has been returned once.
  func exitCode() -> Int32? { process.exitCode() }
}

extension DemoNode.Report {
  mutating func note(_ event: EventRecord) {
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
