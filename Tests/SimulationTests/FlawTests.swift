import MusterChannel
import MusterSimulator
import Testing

/// Bugs planted into the nodes themselves: a checker that finds nothing would be of no use.
struct FlawTests {
  /// Few nodes and no media: many seeds in little time.
  private func options(_ seed: UInt64) -> SimulationOptions {
    SimulationOptions(seed: seed, nodes: 5, media: false)
  }

  @Test(arguments: MeshFlaw.allCases)
  func aPlantedBugIsFoundWithin200Seeds(flaw: MeshFlaw) {
    let found = (1...200 as ClosedRange<UInt64>).first { seed in
      var options = options(seed)
      options.flaw = flaw
      return Simulation.run(options).violation != nil
    }
    #expect(found != nil, "\(flaw) is not found")
  }

  @Test func withoutItTheSameSeedsAreFine() {
    #if DEBUG
      let seeds = 1...10 as ClosedRange<UInt64>
    #else
      let seeds = 1...200 as ClosedRange<UInt64>
    #endif
    for seed in seeds {
      let violation = Simulation.run(options(seed)).violation
      #expect(violation == nil, "seed \(seed): \(String(describing: violation))")
    }
  }
}
