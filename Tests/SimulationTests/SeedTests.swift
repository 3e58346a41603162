import MusterBase
import MusterSimulator
import Testing

/// Whole simulations: what they check must hold on every seed.
struct SeedTests {
  /// Unoptimised code takes some twenty times as long: there a first impression has to do.
  #if DEBUG
    static let seeds: ClosedRange<UInt64> = 1...30
  #else
    static let seeds: ClosedRange<UInt64> = 1...1000
  #endif

  @Test func everySeedKeepsWhatTheCheckersAskFor() {
    var faults: [Fault] = []
    var quietSeeds: [UInt64] = []
    for seed in Self.seeds {
      let result = Simulation.run(SimulationOptions(seed: seed))
      let failure = result.violation?.description ?? ""
      #expect(failure.isEmpty, "seed \(seed): \(failure): muster simulate --seed \(seed)")
      for fault in result.faults where !faults.contains(fault) { faults.append(fault) }
      if result.frames == 0 { quietSeeds.append(seed) }
    }
    #expect(faults.count == Fault.allCases.count, "only \(faults)")
    // Two nodes of which one stays out of the call have nothing to show each other.
    #expect(quietSeeds.count < Self.seeds.count / 4, "no pictures in \(quietSeeds)")
  }

  @Test(arguments: [1, 2, 3, 99] as [UInt64])
  func theSameSeedIsTheSameRunToTheByte(seed: UInt64) {
    let options = SimulationOptions(seed: seed, keepsTimeline: true)
    let first = Simulation.run(options)
    let second = Simulation.run(options)
    #expect(first == second, "seed \(seed)")
    #expect(first.timeline.count > first.nodes)
    #expect(first.digest.count == 64)
  }

  @Test func keepingTheTimelineChangesNothing() {
    let without = Simulation.run(SimulationOptions(seed: 5))
    let with = Simulation.run(SimulationOptions(seed: 5, keepsTimeline: true))
    #expect(without.timeline.isEmpty && !with.timeline.isEmpty)
    #expect(without.digest == with.digest)
  }

  @Test func otherSeedsAreOtherRuns() {
    var digests: [String] = []
    for seed in 1...8 as ClosedRange<UInt64> {
      let digest = Simulation.run(SimulationOptions(seed: seed, nodes: 2, seconds: 6)).digest
      #expect(!digests.contains(digest), "seed \(seed)")
      digests.append(digest)
    }
  }

  @Test(arguments: [2, 3, 5, 8])
  func withoutFaultsEveryoneSeesEveryone(nodes: Int) {
    for seed in 1...3 as ClosedRange<UInt64> {
      let options = SimulationOptions(seed: seed, nodes: nodes, seconds: 8, faults: .none)
      let result = Simulation.run(options)
      #expect(result.violation == nil, "seed \(seed): \(String(describing: result.violation))")
      #expect(result.nodes == nodes && result.faults.isEmpty)
      #expect(result.linksMade == UInt64(nodes * (nodes - 1)), "seed \(seed)")
      #expect(result.network.lost == 0 && result.network.cut == 0)
    }
  }

  @Test(arguments: Fault.allCases)
  func eachFaultAloneIsSurvived(fault: Fault) {
    for seed in 1...4 as ClosedRange<UInt64> {
      let options = SimulationOptions(seed: seed, nodes: 4, seconds: 16, faults: .only([fault]))
      let result = Simulation.run(options)
      #expect(result.violation == nil, "seed \(seed): \(String(describing: result.violation))")
      #expect(result.faults == [fault])
    }
  }

  @Test func oneNodeAloneIsNoTrouble() {
    let result = Simulation.run(SimulationOptions(seed: 7, nodes: 1, seconds: 4))
    #expect(result.violation == nil)
    #expect(result.linksMade == 0)
  }
}
