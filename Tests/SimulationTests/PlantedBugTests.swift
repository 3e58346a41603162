import MusterChannel
import MusterSimulator
import Testing

/// Bugs planted into the nodes and their hosts: a checker that finds nothing would be of no use.
struct PlantedBugTests {
  /// Few nodes and no media: many seeds in little time.
  private static func options(_ seed: UInt64) -> SimulationOptions {
    SimulationOptions(seed: seed, nodes: 5, media: false)
  }

  private func firstViolation(
    with bug: PlantedBug, invariants: Bool = false
  ) -> Violation? {
    for seed in Tier.hunt(from: known(bug)) {
      var options = Self.options(seed)
      options.bug = bug
      options.checksInvariants = invariants
      if let violation = Simulation.run(options).violation { return violation }
    }
    return nil
  }

  /// A seed that shows the bug.
  private func known(_ bug: PlantedBug) -> UInt64 {
    switch bug {
    case .mergeByArrival: 5
    case .uncheckedRole, .sendsBeforeWritten, .entersLeftCalls, .missesCalls: 1
    case .endsReportedFailed: 3
    case .ordersByCounter: 13
    }
  }

  /// The checkers of which a bug violates one first.
  private func checkers(of bug: PlantedBug) -> [String] {
    switch bug {
    // Entries that replace each other circulate without end, too.
    case .mergeByArrival: ["agreement", "bounds"]
    case .uncheckedRole: ["roles"]
    case .endsReportedFailed: ["calls"]
    case .sendsBeforeWritten: ["commit"]
    case .ordersByCounter: ["standing"]
    case .entersLeftCalls, .missesCalls: ["entry"]
    }
  }

  @Test(arguments: PlantedBug.allCases)
  func aPlantedBugIsFoundByItsChecker(bug: PlantedBug) throws {
    let violation = try #require(firstViolation(with: bug))
    #expect(checkers(of: bug).contains(violation.checker), "\(violation)")
  }

  @Test func invariantsFindANodeThatIgnoresRoles() {
    #expect(firstViolation(with: .uncheckedRole, invariants: true)?.checker == "invariants")
  }

  @Test func withoutPlantedBugsTheSameSeedsPass() async {
    let seeds = Tier.seeds(60, of: 200)
    for (seed, violation) in await Tier.run(seeds, { Simulation.run(Self.options($0)).violation }) {
      #expect(violation == nil, "seed \(seed): \(String(describing: violation))")
    }
  }
}
