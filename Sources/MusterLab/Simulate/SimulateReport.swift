import Muster
import MusterBase
import MusterSimulator

/// The result of a simulation with one seed.
protocol SeedResult {
  var seed: UInt64 { get }
  var nodes: Int { get }
  /// The violation that ended the run; nil for a run without violations.
  var violation: Violation? { get }
  /// One line per event, if the run has kept them.
  var timeline: [String] { get }
  /// The outcome in one line.
  var summary: String { get }
}

extension SimulationResult: SeedResult {
  var summary: String { SimulateReport.summary(of: self) }
}

/// The report of `muster-lab simulate` as text and JSON.
enum SimulateReport {
  static func summary(of result: SimulationResult) -> String {
    let outcome = result.violation.map { "FAILS: \($0)" } ?? "ok"
    let names = result.faults.map(\.rawValue).joined(separator: ",")
    return "seed \(result.seed): \(outcome), \(result.nodes) nodes, \(result.shape.rawValue), "
      + "\(result.channel.rawValue)\(result.hasMedia ? ", media" : ""), "
      + "\(milliseconds(result.duration) / 1000) s, \(result.network.delivered) datagrams, "
      + "\(result.messages.sent) messages, \(result.calls.started) calls, "
      + "faults \(names.isEmpty ? "none" : names), digest \(result.digest.prefix(16))"
  }

  /// The totals of all runs, with details of a single or a failed run.
  static func json(_ results: [SimulationResult], firstSeed: UInt64) -> JSONValue {
    var fields = outcome(results, firstSeed: firstSeed)
    fields += [
      ("simulatedSeconds", .number(results.reduce(0) { $0 + $1.duration.inSeconds })),
      ("datagrams", .integer(sum(results) { $0.network.delivered })),
      ("bytes", .integer(sum(results) { $0.bytes })),
      ("frames", .integer(sum(results) { $0.frames })),
      ("audioPackets", .integer(sum(results) { $0.audioPackets })),
      ("links", .integer(sum(results) { $0.linksMade })),
      ("convergence", convergence(results)),
      ("messages", messages(results)),
      ("calls", calls(results)),
      ("epochs", .integer(sum(results) { $0.epochs })),
      ("grants", .integer(sum(results) { $0.grants })),
      ("moderations", .integer(sum(results) { $0.moderations })),
      ("refusals", .integer(sum(results) { $0.refusals })),
    ]
    if results.count == 1, let only = results.first {
      fields.append(("shape", .string(only.shape.rawValue)))
      fields.append(("channel", .string(only.channel.rawValue)))
      fields.append(("media", .bool(only.hasMedia)))
      fields.append(("faults", .array(only.faults.map { .string($0.rawValue) })))
      fields.append(("digest", .string(only.digest)))
    }
    return .object(fields + failure(of: results))
  }

  /// The fields that the reports of all simulations begin with.
  static func outcome<Result: SeedResult>(
    _ results: [Result], firstSeed: UInt64
  ) -> [(String, JSONValue)] {
    [
      ("seeds", .integer(Int64(results.count))),
      ("firstSeed", .string(String(firstSeed))),
      ("ok", .bool(results.last?.violation == nil)),
      ("nodesTotal", .integer(Int64(results.reduce(0) { $0 + $1.nodes }))),
    ]
  }

  /// The additional fields if the last run has failed; otherwise empty.
  static func failure<Result: SeedResult>(of results: [Result]) -> [(String, JSONValue)] {
    guard let last = results.last, let violation = last.violation else { return [] }
    return [
      ("failedSeed", .string(String(last.seed))), ("checker", .string(violation.checker)),
      ("violation", .string(violation.what)),
      ("atMs", .integer(violation.at.nanoseconds / 1_000_000)),
    ]
  }

  /// The times from the end of the faults to convergence, in milliseconds; null if no run
  /// converged.
  private static func convergence(_ results: [SimulationResult]) -> JSONValue {
    let settled = results.compactMap { $0.settledAfter.map(milliseconds) }.sorted()
    let frames = results.compactMap { $0.framesAfter.map(milliseconds) }.sorted()
    return .object([
      ("settledMsMedian", part(settled, 0.5)), ("settledMsP99", part(settled, 0.99)),
      ("settledMsMax", part(settled, 1)), ("picturesMsMedian", part(frames, 0.5)),
      ("picturesMsP99", part(frames, 0.99)), ("picturesMsMax", part(frames, 1)),
    ])
  }

  private static func messages(_ results: [SimulationResult]) -> JSONValue {
    let medians = results.filter { $0.messages.shown > 0 }
      .map { milliseconds($0.messages.medianDelay) }.sorted()
    let worst = results.map { milliseconds($0.messages.p99Delay) }.sorted()
    return .object([
      ("said", .integer(sum(results) { $0.messages.sent })),
      ("shown", .integer(sum(results) { $0.messages.shown })),
      ("delayMsMedian", part(medians, 0.5)), ("delayMsP99Max", part(worst, 1)),
    ])
  }

  private static func calls(_ results: [SimulationResult]) -> JSONValue {
    .object([
      ("started", .integer(sum(results) { $0.calls.started })),
      ("ended", .integer(sum(results) { $0.calls.ended })),
      ("handedOver", .integer(sum(results) { $0.calls.handedOver })),
    ])
  }

  static func part(_ sorted: [Int64], _ fraction: Double) -> JSONValue {
    sorted.isEmpty ? .null : .integer(sorted[Int(Double(sorted.count - 1) * fraction)])
  }

  static func sum(
    _ results: [SimulationResult], _ part: (SimulationResult) -> UInt64
  ) -> Int64 {
    Int64(clamping: results.reduce(0) { $0 &+ part($1) })
  }

  static func milliseconds(_ duration: Duration) -> Int64 {
    duration.wholeNanoseconds / 1_000_000
  }

  // MARK: Gossip

  static let gossipHeading =
    "nodes  links  median ms  p99 ms  all ms  bytes/update  datagrams/update  idle bytes/s"

  static func row(of result: GossipResult) -> String {
    let cells: [(String, Int)] = [
      (String(result.nodes), 5), (String(result.links), 7),
      (String(milliseconds(result.median)), 11), (String(milliseconds(result.p99)), 8),
      (result.reachedAll ? String(milliseconds(result.longest)) : "never", 8),
      (String(Int(result.bytesPerUpdate)), 14), (String(Int(result.datagramsPerUpdate)), 18),
      (String(Int(result.idleBytesPerSecond)), 14),
    ]
    return cells.map { text, width in
      String(repeating: " ", count: max(width - text.count, 0)) + text
    }.joined()
  }

  static func json(_ results: [GossipResult]) -> JSONValue {
    .array(
      results.map { result in
        .object([
          ("nodes", .integer(Int64(result.nodes))), ("degree", .integer(Int64(result.degree))),
          ("links", .integer(Int64(result.links))),
          ("updates", .integer(Int64(result.updates))), ("reachedAll", .bool(result.reachedAll)),
          ("medianMs", .integer(milliseconds(result.median))),
          ("p99Ms", .integer(milliseconds(result.p99))),
          ("allMs", .integer(milliseconds(result.longest))),
          ("bytesPerNodeAndUpdate", .number(result.bytesPerUpdate)),
          ("datagramsPerNodeAndUpdate", .number(result.datagramsPerUpdate)),
          ("idleBytesPerNodeAndSecond", .number(result.idleBytesPerSecond)),
        ])
      })
  }
}
