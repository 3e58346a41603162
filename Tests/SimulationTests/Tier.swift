import Glibc
import MusterSimulator
import Synchronization
import Testing

/// How much of a search or of a statistic a run of the tests makes: few runs in the gate, which
/// every change waits for, and all of them in `make test-all`, which sets `MUSTER_TESTS=all`.
enum Tier {
  static let isAll = getenv("MUSTER_TESTS").map { String(cString: $0) == "all" } ?? false

  /// The most seeds of one kind in the gate.
  static let mostSeeds = 60
  /// The most simulations of a whole call in the gate.
  static let mostCalls = 25

  private static let calls = Atomic(0)

  /// The seeds from 1 on: so many in the gate, and so many in all.
  static func seeds(_ gate: UInt64, of all: UInt64) -> ClosedRange<UInt64> {
    1...(isAll ? all : gate)
  }

  /// The cases of the gate, and the further ones of all tests.
  static func cases<Case>(_ gate: [Case], and further: [Case]) -> [Case] {
    isAll ? gate + further : gate
  }

  /// The seeds to look for a planted defect in. The first one is known to show it; the next ones
  /// stand in for it when a change of the nodes has made other runs of the seeds.
  static func hunt(from known: UInt64) -> ClosedRange<UInt64> {
    isAll ? 1...200 : known...known + 9
  }

  /// Simulates a whole call.
  static func call(_ scenario: NetworkScenario, seed: UInt64, draws: Bool = false) -> CallResult {
    let number = calls.add(1, ordering: .relaxed).newValue
    #expect(
      isAll || number <= mostCalls,
      "the gate simulates \(number) whole calls: take one out, or let it be one of all tests")
    return CallSimulation.run(scenario, seed: seed, draws: draws)
  }

  /// Runs a simulation for each seed, on all cores; the results are in the order of the seeds.
  ///
  /// Seeds are handed out in small chunks, because their costs differ by a factor of a hundred.
  static func run<Result: Sendable>(
    _ seeds: ClosedRange<UInt64>, _ simulate: @escaping @Sendable (UInt64) -> Result
  ) async -> [(seed: UInt64, result: Result)] {
    #expect(
      isAll || seeds.count <= mostSeeds,
      "the gate runs \(seeds.count) seeds of a kind: let some be among those of all tests")
    let size: UInt64 = 4
    return await withTaskGroup(of: [(seed: UInt64, result: Result)].self) { group in
      for first in stride(from: seeds.lowerBound, through: seeds.upperBound, by: Int(size)) {
        let chunk = first...min(first + size - 1, seeds.upperBound)
        group.addTask { chunk.map { ($0, simulate($0)) } }
      }
      var results: [(seed: UInt64, result: Result)] = []
      for await chunk in group { results += chunk }
      return results.sorted { $0.seed < $1.seed }
    }
  }
}
