import Muster
import MusterBase
import MusterCommand

/// What `muster-lab bench mesh` has measured.
package struct MeshResult: Sendable {
  /// The figures of one node.
  package struct Node: Sendable {
    package var name: String
    /// The frames of others' video that arrived, and those of the full rates.
    package var frames: Int
    package var fullRateFrames: Double
    package var freezes: Int
    package var frozenSeconds: Double
    /// The share of others' audio that was missing at playout, in percent; nil if there was none.
    package var audioLostPercent: Double?
    /// The latency from capture to decoded frame in ms: the median over the senders of their
    /// medians, and the highest 95th percentile; nil if the node does not read it.
    package var latency: (p50: Double, p95: Double)?
    /// The UDP payload sent, in kbit/s.
    package var uplinkKbps: Double
    package var cores: Double
    package var megabytes: Double
  }

  /// A change of layers to less, for one reason.
  package struct StepDown: Sendable {
    package var from: String
    package var to: String
    package var why: String
    package var count: Int
  }

  package var nodes: [Node] = []
  /// The CPU time of each kind of thread in cores, on average over the nodes.
  package var threads: [(name: String, cores: Double)] = []
  package var stepDowns: [StepDown] = []

  package init() {}
}

/// The statistics of one node of the mesh at the beginning and at the end of a measurement.
package struct MeshSpan: Sendable {
  package var name: String
  package var before: StatisticsRecord
  package var after: StatisticsRecord
  /// The time between the statistics in seconds.
  package var seconds: Double
  /// The CPU time of the threads over `cpuSpan` seconds, in seconds by name.
  package var threads: PeerTable<String, Double>
  package var cpuSpan: Double
  /// The layer changes in between.
  package var changes: [LayerRecord]

  package init(
    _ name: String, before: StatisticsRecord, after: StatisticsRecord, seconds: Double,
    threads: PeerTable<String, Double>, cpuSpan: Double, changes: [LayerRecord]
  ) {
    self.name = name
    self.before = before
    self.after = after
    self.seconds = seconds
    self.threads = threads
    self.cpuSpan = cpuSpan
    self.changes = changes
  }
}

extension MeshResult {
  /// The result for nodes that request the speaker, given by its member id, and the others at these
  /// frame rates.
  package init(
    _ spans: [MeshSpan], speaker: String, fullRates: (speaker: Double, others: Double)
  ) {
    nodes = spans.map { span in
      Self.node(span) { $0 == speaker ? fullRates.speaker : fullRates.others }
    }
    var sums = PeerTable<String, Double>()
    for span in spans {
      for (name, seconds) in span.threads {
        sums[name] = (sums[name] ?? 0) + seconds / span.cpuSpan / Double(spans.count)
      }
    }
    threads = sums.map { ($0.key, $0.value) }.sorted { $0.1 > $1.1 }
    stepDowns = Self.stepDowns(spans.flatMap(\.changes).filter { $0.direction == "out" })
  }

  private static func node(_ span: MeshSpan, fullRate: (String) -> Double) -> Node {
    var node = Node(
      name: span.name, frames: 0, fullRateFrames: 0, freezes: 0, frozenSeconds: 0,
      audioLostPercent: nil, latency: nil, uplinkKbps: span.after.node.uplinkKbps,
      cores: span.threads.reduce(0) { $0 + $1.value } / span.cpuSpan,
      megabytes: span.after.node.rssMB)
    for peer in span.after.peers {
      let former = span.before.peers.first { $0.member == peer.member }?.received
      node.fullRateFrames += fullRate(peer.member) * span.seconds
      guard let received = peer.received else { continue }
      node.frames += received.frames - (former?.frames ?? 0)
      node.freezes += received.freezes - (former?.freezes ?? 0)
      node.frozenSeconds += (received.frozenMs - (former?.frozenMs ?? 0)) / 1000
    }
    func counted(_ name: String) -> Double {
      span.after.counters[name] - span.before.counters[name]
    }
    let audio = (lost: counted("audio.lost"), received: counted("audio.received"))
    if audio.lost + audio.received > 0 {
      node.audioLostPercent = 100 * audio.lost / (audio.lost + audio.received)
    }
    let latencies = span.after.peers.compactMap(\.latencyMs)
    if !latencies.isEmpty {
      node.latency = (
        latencies.map(\.p50).sorted()[latencies.count / 2], latencies.map(\.p95).max() ?? 0
      )
    }
    return node
  }

  private static func stepDowns(_ changes: [LayerRecord]) -> [StepDown] {
    var result: [StepDown] = []
    for change in changes where isLess(change.to, than: change.from) {
      let same = result.firstIndex {
        $0.from == change.from && $0.to == change.to && $0.why == change.why
      }
      if let same {
        result[same].count += 1
      } else {
        result.append(StepDown(from: change.from, to: change.to, why: change.why, count: 1))
      }
    }
    return result.sorted { ($1.count, $0.from, $0.to) < ($0.count, $1.from, $1.to) }
  }

  private static func isLess(_ layer: String, than other: String) -> Bool {
    /// The pixels and the frame rate of a layer such as `320x180@15`; 0 for `off`.
    func size(_ layer: String) -> (Int, Int) {
      let parts = layer.split(separator: "@")
      let pixels = parts.first.flatMap { VideoSize(String($0)) }?.pixels ?? 0
      return (pixels, parts.dropFirst().first.flatMap { Int($0) } ?? 0)
    }
    return size(layer) < size(other)
  }
}

extension CounterRecord {
  /// The value of a counter; 0 for one that has not counted yet.
  fileprivate subscript(name: String) -> Double {
    counters.first { $0.name == name }.map { Double($0.value) } ?? 0
  }
}

/// The report of `muster-lab bench mesh` as a table and as JSON.
package enum MeshBenchReport {
  private static let widths = [8, 8, 8, 8, 9, 8, 14, 9, 8, 8]
  private static let titles = [
    "node", "frames", "of full", "freezes", "frozen s", "audio", "latency ms", "uplink", "CPU",
    "memory",
  ]
  private static let units = [
    "", "", "rate %", "", "", "lost %", "p50/p95", "kbit/s", "cores", "MB",
  ]

  package static func table(_ result: MeshResult) -> [String] {
    var lines = [titles, units].map { line($0) } + result.nodes.map { line(cells($0)) }
    if !result.nodes.isEmpty { lines.append(line(cells(result.total))) }
    lines += ["", "CPU by thread, cores a node"]
    for thread in result.threads where thread.cores >= 0.0005 {
      lines.append(Style.padded("  \(thread.name)", to: 20) + Figures.text(thread.cores, 3))
    }
    lines += ["", "Stepped down"]
    if result.stepDowns.isEmpty { lines.append("  nothing") }
    for step in result.stepDowns {
      let change = "  \(step.from) > \(step.to)"
      lines.append(Style.padded(change, to: 30) + "\(step.count) times: \(step.why)")
    }
    return lines
  }

  private static func line(_ cells: [String]) -> String {
    var text = zip(cells, widths).map { Style.padded($0, to: $1) }.joined()
    while text.last == " " { text.removeLast() }
    return text
  }

  private static func cells(_ node: MeshResult.Node) -> [String] {
    [
      node.name, String(node.frames), Figures.text(node.fullRatePercent, 1),
      String(node.freezes), Figures.text(node.frozenSeconds, 2),
      Figures.text(node.audioLostPercent, 2),
      node.latency.map { "\(Figures.text($0.p50, 0))/\(Figures.text($0.p95, 0))" } ?? "-",
      Figures.text(node.uplinkKbps, 0), Figures.text(node.cores, 3),
      Figures.text(node.megabytes, 1),
    ]
  }

  // MARK: JSON

  package static func json(_ result: MeshResult) -> JSONValue {
    .object([
      ("nodes", .array(result.nodes.map(json))), ("total", json(result.total)),
      ("threads", .object(result.threads.map { ($0.name, .number($0.cores)) })),
      (
        "steppedDown",
        .array(
          result.stepDowns.map {
            .object([
              ("from", .string($0.from)), ("to", .string($0.to)), ("why", .string($0.why)),
              ("count", .integer(Int64($0.count))),
            ])
          })
      ),
    ])
  }

  private static func json(_ node: MeshResult.Node) -> JSONValue {
    .object([
      ("name", .string(node.name)), ("frames", .integer(Int64(node.frames))),
      ("fullRatePercent", node.fullRatePercent.map(JSONValue.number) ?? .null),
      ("freezes", .integer(Int64(node.freezes))), ("frozenSeconds", .number(node.frozenSeconds)),
      ("audioLostPercent", node.audioLostPercent.map(JSONValue.number) ?? .null),
      ("latencyMsMedian", node.latency.map { .number($0.p50) } ?? .null),
      ("latencyMsP95", node.latency.map { .number($0.p95) } ?? .null),
      ("uplinkKbps", .number(node.uplinkKbps)), ("cores", .number(node.cores)),
      ("megabytes", .number(node.megabytes)),
    ])
  }
}

extension MeshResult.Node {
  /// The frames in percent of those of the full rates; nil if no video was requested.
  package var fullRatePercent: Double? {
    fullRateFrames > 0 ? 100 * Double(frames) / fullRateFrames : nil
  }
}

extension MeshResult {
  /// The sums over all nodes; the means of audio and memory, and the one latency.
  package var total: Node {
    let lost = nodes.compactMap(\.audioLostPercent)
    return Node(
      name: "all", frames: nodes.reduce(0) { $0 + $1.frames },
      fullRateFrames: nodes.reduce(0) { $0 + $1.fullRateFrames },
      freezes: nodes.reduce(0) { $0 + $1.freezes },
      frozenSeconds: nodes.reduce(0) { $0 + $1.frozenSeconds },
      audioLostPercent: lost.isEmpty ? nil : lost.reduce(0, +) / Double(lost.count),
      latency: nodes.compactMap(\.latency).last, uplinkKbps: nodes.reduce(0) { $0 + $1.uplinkKbps },
      cores: nodes.reduce(0) { $0 + $1.cores },
      megabytes: nodes.reduce(0) { $0 + $1.megabytes } / Double(max(nodes.count, 1)))
  }
}
