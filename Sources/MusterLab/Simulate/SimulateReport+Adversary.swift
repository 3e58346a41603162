import Muster
import MusterBase
import MusterSimulator

extension AdversaryResult: SeedResult {
  var summary: String { SimulateReport.summary(of: self) }
}

/// The report of `muster-lab simulate --adversary`.
extension SimulateReport {
  static func summary(of result: AdversaryResult) -> String {
    let outcome = result.violation.map { "FAILS: \($0)" } ?? "ok"
    let tactics = result.tactics.map(\.rawValue).joined(separator: ",")
    return "seed \(result.seed): \(outcome), \(result.nodes) nodes, \(result.channel.rawValue), "
      + "\(milliseconds(result.duration) / 1000) s, \(result.messages) messages, "
      + "adversary: \(result.keys) keys, \(result.entries) entries, "
      + "\(result.bytesSent / 1000) kB sent, \(result.bytesReceived / 1000) kB received, "
      + "\(result.steps) steps of members, "
      + "\(tactics.isEmpty ? "idle" : tactics), counters \(result.counters.rawValue), "
      + "digest \(result.digest.prefix(16))"
  }

  /// The totals of all runs, with details of a failed run.
  static func json(_ results: [AdversaryResult], firstSeed: UInt64) -> JSONValue {
    var fields = outcome(results, firstSeed: firstSeed)
    fields += [
      ("simulatedSeconds", .number(results.reduce(0) { $0 + $1.duration.inSeconds })),
      ("messages", .integer(sum(results) { UInt64($0.messages) })),
      ("keys", .integer(sum(results) { UInt64($0.keys) })),
      ("entries", .integer(sum(results) { UInt64($0.entries) })),
      ("bytesSent", .integer(sum(results) { UInt64($0.bytesSent) })),
      ("bytesReceived", .integer(sum(results) { UInt64($0.bytesReceived) })),
      ("steps", .integer(sum(results) { UInt64($0.steps) })),
    ]
    if results.count == 1, let only = results.first {
      fields.append(("channel", .string(only.channel.rawValue)))
      fields.append(("tactics", .array(only.tactics.map { .string($0.rawValue) })))
      fields.append(("counters", .string(only.counters.rawValue)))
      fields.append(("digest", .string(only.digest)))
    }
    return .object(fields + failure(of: results))
  }

  private static func sum(
    _ results: [AdversaryResult], _ part: (AdversaryResult) -> UInt64
  ) -> Int64 {
    Int64(clamping: results.reduce(0) { $0 &+ part($1) })
  }
}
