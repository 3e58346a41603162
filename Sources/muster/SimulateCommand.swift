import ArgumentParser
import Muster
import MusterBase
import MusterSimulator

/// `muster simulate`: many nodes on a virtual network and clock, from a seed.
struct SimulateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "simulate",
    abstract: "Run nodes on a simulated network with faults, and check what may never happen.",
    discussion: """
      The same seed gives the same run, to the byte. One seed prints a line per event; several \
      print a line each and stop at the first that fails.
      """)

  @Option(help: "How many nodes (default: 2 to 8, as the seed says).")
  var nodes: Int?

  @Option(help: "The first seed.")
  var seed: UInt64 = 1

  @Option(help: "How many seeds in a row.")
  var seeds = 1

  @Option(help: "Simulated seconds: half of them with faults; ends early when all have agreed.")
  var seconds = 26

  @Option(help: "swarm, none, or a list such as loss,partition,crash.")
  var faults = "swarm"

  @Flag(help: "The result as a JSON object on the last line.")
  var json = false

  func run() throws {
    let choice = try faultChoice()
    try checkRanges()
    var results: [SimulationResult] = []
    for number in 0..<seeds {
      let options = SimulationOptions(
        seed: seed &+ UInt64(number), nodes: nodes, seconds: seconds, faults: choice,
        keepsTimeline: seeds == 1)
      let result = Simulation.run(options)
      for line in result.timeline { print(line) }
      if !json || seeds == 1 { print(summary(of: result)) }
      results.append(result)
      if result.violation != nil { break }
    }
    if json { print(report(results).text) }
    if let failed = results.last, let violation = failed.violation {
      throw MusterError(
        "seed \(failed.seed) fails: \(violation)", hint: "see \(reproduction(of: failed))")
    }
  }

  private func faultChoice() throws -> FaultChoice {
    switch faults {
    case "swarm": return .swarm
    case "none": return .none
    default: break
    }
    let named = try faults.split(separator: ",").map { name in
      guard let fault = Fault(rawValue: String(name)) else {
        let known = Fault.allCases.map(\.rawValue).joined(separator: ",")
        throw MusterError(
          "no fault is called '\(name)'", hint: "use some of \(known)", kind: .usage)
      }
      return fault
    }
    return .only(named)
  }

  private func checkRanges() throws {
    let limit = SimulationOptions.nodeLimit
    if let nodes, !(1...limit).contains(nodes) {
      throw MusterError("--nodes \(nodes)", hint: "use 1 to \(limit)", kind: .usage)
    }
    guard (2...86_400).contains(seconds) else {
      throw MusterError("--seconds \(seconds)", hint: "use 2 to 86400", kind: .usage)
    }
    guard (1...10_000_000).contains(seeds) else {
      throw MusterError("--seeds \(seeds)", hint: "use 1 or more", kind: .usage)
    }
  }

  private func summary(of result: SimulationResult) -> String {
    let outcome = result.violation.map { "FAILS: \($0)" } ?? "ok"
    let names = result.faults.map(\.rawValue).joined(separator: ",")
    return "seed \(result.seed): \(outcome), \(result.nodes) nodes, "
      + "\(milliseconds(result.duration) / 1000) s, \(result.network.delivered) datagrams, "
      + "\(result.frames) frames, faults \(names.isEmpty ? "none" : names), "
      + "digest \(result.digest.prefix(16))"
  }

  private func report(_ results: [SimulationResult]) -> JSONValue {
    let failed = results.last.flatMap { $0.violation == nil ? nil : $0 }
    var fields: [(String, JSONValue)] = [
      ("seeds", .integer(Int64(results.count))),
      ("firstSeed", .string(String(seed))),
      ("ok", .bool(failed == nil)),
      ("nodesTotal", .integer(sum(results) { UInt64($0.nodes) })),
      ("simulatedSeconds", .number(results.reduce(0) { $0 + $1.duration.inSeconds })),
      ("datagrams", .integer(sum(results) { $0.network.delivered })),
      ("bytes", .integer(sum(results) { $0.bytes })),
      ("frames", .integer(sum(results) { $0.frames })),
      ("audioPackets", .integer(sum(results) { $0.audioPackets })),
      ("links", .integer(sum(results) { $0.linksMade })),
      ("settledAfterMsMax", .integer(longest(results.map(\.settledAfter)))),
      ("picturesAfterMsMax", .integer(longest(results.map(\.picturesAfter)))),
    ]
    if results.count == 1, let only = results.first {
      fields.append(("digest", .string(only.digest)))
    }
    if let failed, let violation = failed.violation {
      fields.append(("failedSeed", .string(String(failed.seed))))
      fields.append(("checker", .string(violation.checker)))
      fields.append(("violation", .string(violation.what)))
      fields.append(("atMs", .integer(violation.at.nanoseconds / 1_000_000)))
    }
    return .object(fields)
  }

  private func sum(_ results: [SimulationResult], _ part: (SimulationResult) -> UInt64) -> Int64 {
    Int64(clamping: results.reduce(0) { $0 &+ part($1) })
  }

  private func longest(_ durations: [Duration?]) -> Int64 {
    durations.compactMap { $0.map(milliseconds) }.max() ?? 0
  }

  private func milliseconds(_ duration: Duration) -> Int64 {
    duration.wholeNanoseconds / 1_000_000
  }

  /// The command that shows a failing run again.
  private func reproduction(of result: SimulationResult) -> String {
    var words = ["muster simulate --seed \(result.seed)"]
    if let nodes { words.append("--nodes \(nodes)") }
    if seconds != 26 { words.append("--seconds \(seconds)") }
    if faults != "swarm" { words.append("--faults \(faults)") }
    return words.joined(separator: " ")
  }
}
