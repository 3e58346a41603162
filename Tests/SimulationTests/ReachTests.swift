import MusterBase
import MusterSimulator
import Testing

/// Members of a call behind routers whose network changes all the time.
struct ReachTests {
  static let seeds = Tier.seeds(60, of: 100)

  @Test func reachablePairsLinkWithinTenSecondsOfTheLastChange() async {
    var changes = ReachChange.allCases.map { _ in 0 }
    var (direct, relayed, apart) = (0, 0, 0)
    for (seed, result) in await Tier.run(
      Self.seeds, { ReachSimulation.run(ReachOptions(seed: $0)) })
    {
      let failure = result.violation?.description ?? ""
      #expect(
        failure.isEmpty, "seed \(seed): \(failure): muster-lab simulate --reach --seed \(seed)")
      for (index, count) in result.changes.enumerated() { changes[index] += count }
      direct += result.direct
      relayed += result.relayed
      apart += result.apart
    }
    #expect(!changes.contains(0), "\(changes)")
    #expect(direct > relayed && relayed > 0 && apart > 0, "\(direct), \(relayed), \(apart)")
  }

  @Test(arguments: Tier.seeds(1, of: 3))
  func theSameSeedIsTheSameRunToTheByte(seed: UInt64) {
    let first = ReachSimulation.run(ReachOptions(seed: seed, keepsTimeline: true))
    var second = ReachSimulation.run(ReachOptions(seed: seed))
    #expect(first.timeline.count > first.nodes && second.timeline.isEmpty)
    second.timeline = first.timeline
    #expect(first == second, "seed \(seed)")
    #expect(first.digest != ReachSimulation.run(ReachOptions(seed: seed + 1)).digest)
  }

  @Test(arguments: ReachFlaw.allCases)
  func aPlantedBugIsFound(flaw: ReachFlaw) {
    let found = Tier.hunt(from: 1).first { seed in
      var options = ReachOptions(seed: seed)
      options.flaw = flaw
      return ReachSimulation.run(options).violation != nil
    }
    #expect(found != nil, "\(flaw) is not found")
  }

  @Test(arguments: [(-5, 2), (1, 2), (3, 3), (1000, ReachOptions.nodeLimit)])
  func theNumberOfNodesIsBounded(asked: Int, nodes: Int) {
    #expect(ReachSimulation.run(ReachOptions(seed: 1, nodes: asked)).nodes == nodes)
  }
}
