import Muster
import MusterBase
import MusterCommand
import MusterSystem

/// A node of `muster-lab bench mesh`, in a network namespace of its own.
struct MeshNode: Sendable {
  /// What the bench notes of a node's events.
  struct Summary: NodeSummary {
    var id: String?
    var members: Set<String> = []
    var firstFrames: Set<String> = []
    var isInCall = false
    /// The last statistics, and their time in seconds since the start of the process.
    var statistics: (at: Double, record: StatisticsRecord)?
    var changes: [LayerRecord] = []
    var hasEnded = false

    mutating func note(_ event: EventRecord) {
      switch event.body {
      case .ready(let ready): id = ready.id
      case .memberJoined(let member): members.insert(member.member)
      case .memberLeft(let member, _): members.remove(member.member)
      case .callState(let call): isInCall = call.state == "connected"
      case .firstFrame(let frame): firstFrames.insert(frame.member)
      case .layer(let change): changes.append(change)
      case .statistics(let record): statistics = (event.t, record)
      default: break
      }
    }
  }

  /// The figures of the node until now.
  struct Sample: Sendable {
    /// The last statistics, and their time in seconds since the start of the process.
    var at: Double
    var record: StatisticsRecord
    var threads: ThreadTimes
    var threadsAt: Instant
    /// The number of layer changes.
    var changes: Int
  }

  let name: String
  private let process: NodeProcess<Summary>

  var summary: Summary { process.summary }

  /// Starts a program in a namespace, with the arguments of `muster`.
  init(_ name: String, in namespace: String, program: String, _ arguments: [String]) throws {
    self.name = name
    let words = ["netns", "exec", namespace, program] + arguments
    process = try NodeProcess("ip", words, summary: Summary())
  }

  /// The figures until now; nil before the first statistics.
  func sample() -> Sample? {
    let threads = ThreadTimes(ofProcess: process.id)
    let (now, summary) = (BootClock.now, summary)
    return summary.statistics.map {
      Sample(
        at: $0.at, record: $0.record, threads: threads, threadsAt: now,
        changes: summary.changes.count)
    }
  }

  /// The figures from an earlier sample until now.
  func span(since earlier: Sample) -> MeshSpan? {
    guard let now = sample(), now.at > earlier.at else { return nil }
    return MeshSpan(
      name, before: earlier.record, after: now.record, seconds: now.at - earlier.at,
      threads: now.threads.since(earlier.threads),
      cpuSpan: (now.threadsAt - earlier.threadsAt).inSeconds,
      changes: Array(summary.changes[earlier.changes..<now.changes]))
  }

  func send(_ command: Command) { process.send(command) }

  func stop() { process.stop(within: 5) }
}
