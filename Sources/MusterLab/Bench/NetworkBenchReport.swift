import Muster
import MusterBase
import MusterCommand
import MusterSimulator

/// The report of `muster-lab bench network` as a table and as JSON.
package enum NetworkBenchReport {
  private static let widths = [16, 20, 7, 6, 5, 9, 9, 8, 10, 9, 9, 7, 8]
  private static let titles = [
    "scenario", "flow", "kbit/s", "of", "used", "estimate", "queue ms", "first s", "frames",
    "frozen s", "longest", "audio", "layers",
  ]
  private static let units = [
    "", "", "", "", "%", "", "p50/p95", "", "", "", "s", "lost %", "changes",
  ]

  package static let header = [titles, units].map(line).joined(separator: "\n")

  private static func line(_ cells: [String]) -> String {
    var text = ""
    for (cell, width) in zip(cells, widths) { text += Style.padded(cell, to: width) + " " }
    while text.last == " " { text.removeLast() }
    return text
  }

  /// A row for each flow with video.
  package static func rows(_ result: CallResult) -> [String] {
    let flows = result.flows.filter { $0.video != nil }
    var rows = flows.map { line([result.scenario.name] + cells($0)) }
    if let rate = result.tcpKilobitsPerSecond {
      rows.append(line([result.scenario.name, "TCP", Figures.text(rate, 0)]))
    }
    if let fairness = result.fairness {
      rows.append(line([result.scenario.name, "Jain's index", Figures.text(fairness, 2)]))
    }
    return rows
  }

  private static func cells(_ flow: FlowReport) -> [String] {
    let available = flow.availableKilobitsPerSecond
    var cells = [
      "\(flow.from) > \(flow.to)", Figures.text(flow.kilobitsPerSecond, 0),
      Figures.text(available, 0),
      available.map { Figures.text(100 * flow.kilobitsPerSecond / $0, 0) } ?? "-",
      Figures.text(flow.estimatedKilobitsPerSecond, 0),
      "\(milliseconds(flow.queueingMedian))/\(milliseconds(flow.queueing95))",
    ]
    if let video = flow.video {
      cells += [
        video.firstFrameAfter.map { Figures.text($0.inSeconds, 2) } ?? "never",
        "\(video.frames)/\(video.framesCaptured)", Figures.text(video.frozen.inSeconds, 2),
        Figures.text(video.longestFreeze.inSeconds, 2), Figures.text(flow.audioLostPercent, 1),
        String(video.layerChanges),
      ]
    }
    return cells
  }

  private static func milliseconds(_ duration: Duration) -> String {
    Figures.text(duration.inSeconds * 1000, 0)
  }

  // MARK: JSON

  package static func json(_ result: CallResult, seed: UInt64) -> [JSONValue] {
    var objects = result.flows.map { flow in
      JSONValue.object([
        ("scenario", .string(result.scenario.name)), ("seed", .string(String(seed))),
        ("from", .string(flow.from)), ("to", .string(flow.to)),
        ("kbps", .number(flow.kilobitsPerSecond)),
        ("availableKbps", flow.availableKilobitsPerSecond.map(JSONValue.number) ?? .null),
        ("estimateKbps", flow.estimatedKilobitsPerSecond.map(JSONValue.number) ?? .null),
        ("queueMsMedian", .number(flow.queueingMedian.inSeconds * 1000)),
        ("queueMsP95", .number(flow.queueing95.inSeconds * 1000)),
        ("video", flow.video.map(json) ?? .null),
        ("audioLostPercent", .number(flow.audioLostPercent)),
      ])
    }
    if let rate = result.tcpKilobitsPerSecond {
      objects.append(
        .object([
          ("scenario", .string(result.scenario.name)), ("seed", .string(String(seed))),
          ("tcpKbps", .number(rate)),
        ]))
    }
    if let fairness = result.fairness {
      objects.append(
        .object([
          ("scenario", .string(result.scenario.name)), ("seed", .string(String(seed))),
          ("jain", .number(fairness)),
        ]))
    }
    return objects
  }

  private static func json(_ video: FlowReport.Video) -> JSONValue {
    .object([
      ("firstFrameS", video.firstFrameAfter.map { .number($0.inSeconds) } ?? .null),
      ("frames", .integer(Int64(video.frames))),
      ("framesCaptured", .integer(Int64(video.framesCaptured))),
      ("freezes", .integer(Int64(video.freezes))),
      ("frozenS", .number(video.frozen.inSeconds)),
      ("longestFreezeS", .number(video.longestFreeze.inSeconds)),
      ("layerChanges", .integer(Int64(video.layerChanges))),
      ("size", video.size.map { .string($0.description) } ?? .null),
    ])
  }

  /// A scenario; the conditions have the keys and units of the lab's switch: milliseconds, kbit/s
  /// and percent.
  package static func json(_ scenario: NetworkScenario) -> JSONValue {
    .object([
      ("scenario", .string(scenario.name)), ("summary", .string(scenario.summary)),
      ("seconds", .number(scenario.duration.inSeconds)),
      ("participants", .array(scenario.participants.map(json))),
      (
        "tcp",
        scenario.tcp.map {
          .object([
            ("to", .integer(Int64($0.to))), ("at", .number($0.startsAt.inSeconds)),
            ("until", $0.endsAt.map { .number($0.inSeconds) } ?? .null),
          ])
        } ?? .null
      ),
    ])
  }

  private static func json(_ participant: NetworkScenario.Participant) -> JSONValue {
    .object([
      ("name", .string(participant.name)), ("joinsAt", .number(participant.joinsAt.inSeconds)),
      ("video", participant.video.map { .string($0.description) } ?? .null),
      (
        "videoKbps",
        participant.videoKilobitsPerSecond.map { .integer(Int64($0)) } ?? .null
      ),
      ("speaks", .bool(participant.speaks)), ("watches", .bool(participant.watches)),
      ("cuts", participant.cuts.map { .number($0.inSeconds) } ?? .null),
      ("up", .array(participant.up.map(json))), ("down", .array(participant.down.map(json))),
    ])
  }

  private static func json(_ step: NetworkScenario.Step) -> JSONValue {
    let conditions = step.conditions
    var object: [(String, JSONValue)] = [
      ("at", .number(step.at.inSeconds)),
      ("rate", .integer(Int64(conditions.kilobitsPerSecond ?? 0))),
      ("queue", .number(conditions.queueLimit.inSeconds * 1000)),
      // The switch adds jitter on both sides of the delay.
      ("delay", .number((conditions.delay + conditions.jitter / 2).inSeconds * 1000)),
      ("jitter", .number(conditions.jitter.inSeconds * 500)),
      ("loss", .number(conditions.loss * 100)),
      ("burstStart", .number(conditions.burstStart * 100)),
      ("burstEnd", .number(conditions.burstEnd * 100)),
    ]
    if let contention = conditions.contention {
      object += [
        ("wait", .number(contention.wait.inSeconds * 1000)),
        ("failures", .number(contention.failures * 100)),
      ]
    }
    if conditions.audioFirst { object.append(("audioFirst", .bool(true))) }
    return .object(object)
  }
}
