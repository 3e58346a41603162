import Muster
import MusterBase
import MusterSimulator

extension ReachResult: SeedResult {
  var summary: String { SimulateReport.summary(of: self) }
}

/// The report of `muster-lab simulate --reach`.
extension SimulateReport {
  static func summary(of result: ReachResult) -> String {
    let outcome = result.violation.map { "FAILS: \($0)" } ?? "ok"
    let settled = result.settledAfter.map { "all linked after \(milliseconds($0)) ms, " } ?? ""
    let names = zip(ReachChange.allCases, result.changes).filter { $0.1 > 0 }
      .map { "\($0.0.rawValue) \($0.1)" }.joined(separator: ", ")
    return "seed \(result.seed): \(outcome), \(result.nodes) nodes, \(result.homes) homes, "
      + "\(milliseconds(result.duration) / 1000) s, \(settled)\(result.direct) pairs direct, "
      + "\(result.relayed) relayed, \(result.apart) apart, \(result.network.delivered) datagrams, "
      + "changes: \(names.isEmpty ? "none" : names), digest \(result.digest.prefix(16))"
  }

  /// The totals of all runs, with details of a single or a failed run.
  static func json(_ results: [ReachResult], firstSeed: UInt64) -> JSONValue {
    let settled = results.compactMap { $0.settledAfter.map(milliseconds) }.sorted()
    var fields = outcome(results, firstSeed: firstSeed)
    fields += [
      ("simulatedSeconds", .number(results.reduce(0) { $0 + $1.duration.inSeconds })),
      ("datagrams", .integer(Int64(results.reduce(0) { $0 + $1.network.delivered }))),
      ("links", .integer(Int64(results.reduce(0) { $0 + $1.linksMade }))),
      ("settledMsMedian", part(settled, 0.5)), ("settledMsP99", part(settled, 0.99)),
      ("settledMsMax", part(settled, 1)),
      ("pairs", pairs(results)), ("changes", changes(results)),
    ]
    if results.count == 1, let only = results.first {
      fields.append(("homes", .integer(Int64(only.homes))))
      fields.append(("digest", .string(only.digest)))
    }
    return .object(fields + failure(of: results))
  }

  private static func pairs(_ results: [ReachResult]) -> JSONValue {
    .object([
      ("direct", .integer(sum(results) { $0.direct })),
      ("relayed", .integer(sum(results) { $0.relayed })),
      ("apart", .integer(sum(results) { $0.apart })),
    ])
  }

  private static func changes(_ results: [ReachResult]) -> JSONValue {
    .object(
      ReachChange.allCases.enumerated().map { index, change in
        (change.rawValue, .integer(sum(results) { $0.changes[index] }))
      })
  }

  private static func sum(_ results: [ReachResult], _ part: (ReachResult) -> Int) -> Int64 {
    Int64(results.reduce(0) { $0 + part($1) })
  }
}
