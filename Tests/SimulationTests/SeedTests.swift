import MusterBase
import MusterSimulator
import Testing

/// Whole simulations: their checks must hold on every seed.
struct SeedTests {
  /// The seeds are fixed; `.ci/simulate` draws fresh ones.
  static let seeds = Tier.seeds(60, of: 100)

  @Test func everySeedKeepsWhatTheCheckersAskFor() async {
    var faults: [Fault] = []
    var shapes: [NetworkShape] = []
    var totals = CallTotals()
    var (epochs, refusals, quiet) = (0 as UInt64, 0 as UInt64, 0)
    for (seed, result) in await Tier.run(
      Self.seeds, { Simulation.run(SimulationOptions(seed: $0)) })
    {
      let failure = result.violation?.description ?? ""
      #expect(failure.isEmpty, "seed \(seed): \(failure): muster-lab simulate --seed \(seed)")
      for fault in result.faults where !faults.contains(fault) { faults.append(fault) }
      if !shapes.contains(result.shape) { shapes.append(result.shape) }
      totals.ended += result.calls.ended
      totals.handedOver += result.calls.handedOver
      epochs += result.epochs
      refusals += result.refusals
      if result.hasMedia, result.frames == 0 { quiet += 1 }
    }
    #expect(faults.count == Fault.allCases.count, "only \(faults)")
    #expect(shapes.count == NetworkShape.allCases.count, "only \(shapes)")
    #expect(totals.ended > 0 && totals.handedOver > 0, "\(totals)")
    #expect(epochs > 0 && refusals > 0)
    #expect(quiet < Self.seeds.count / 8, "no pictures in \(quiet) seeds")
  }

  /// A node whose role has expired hears of a key change, by which it is a newcomer again and not
  /// shut out: its links count from then on.
  @Test func aKeyChangeShowsLinksAgain() {
    let violation = Simulation.run(SimulationOptions(seed: 202_611_280_850)).violation
    #expect(violation == nil)
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

  @Test(arguments: [2, 3, 5, 8], ChannelKind.allCases)
  func withoutFaultsEveryoneSeesEveryone(nodes: Int, channel: ChannelKind) {
    for seed in Tier.seeds(1, of: 3) {
      let options = SimulationOptions(
        seed: seed, nodes: nodes, seconds: 8, faults: .none, shape: .full, channel: channel,
        media: true)
      let result = Simulation.run(options)
      #expect(result.violation == nil, "seed \(seed): \(String(describing: result.violation))")
      #expect(result.nodes == nodes && result.faults.isEmpty)
      #expect(result.network.lost == 0 && result.network.cut == 0)
      guard channel == .open else { continue }
      #expect(result.linksMade == UInt64(nodes * (nodes - 1)), "seed \(seed)")
    }
  }

  @Test(arguments: NetworkShape.allCases)
  func overAnyConnectedGraphAllAgree(shape: NetworkShape) {
    for seed in Tier.seeds(2, of: 4) {
      let options = SimulationOptions(
        seed: seed, nodes: 7, seconds: 10, faults: .none, shape: shape, channel: .open)
      let result = Simulation.run(options)
      #expect(result.violation == nil, "seed \(seed): \(String(describing: result.violation))")
      #expect(result.messages.shown > 0)
    }
  }

  @Test(arguments: Fault.allCases)
  func everyFaultAloneIsSurvived(fault: Fault) {
    for seed in Tier.seeds(2, of: 4) {
      let options = SimulationOptions(seed: seed, nodes: 4, seconds: 16, faults: .only([fault]))
      let result = Simulation.run(options)
      #expect(result.violation == nil, "seed \(seed): \(String(describing: result.violation))")
      #expect(result.faults == [fault])
    }
  }

  /// These runs include the ejection checker: no present member may be reported as gone.
  @Test func nobodyIsEjectedAtATenthLost() {
    let seconds = Tier.isAll ? 2400 : 600
    let options = SimulationOptions(
      seed: 1, nodes: 6, seconds: seconds, faults: .none, loss: 0.1, shape: .full, channel: .open,
      media: false)
    let result = Simulation.run(options)
    #expect(result.violation == nil, "\(String(describing: result.violation))")
    #expect(result.duration > .seconds(seconds / 2))
  }

  @Test func oneNodeAloneIsNoTrouble() {
    for channel in ChannelKind.allCases {
      let options = SimulationOptions(seed: 7, nodes: 1, seconds: 4, channel: channel)
      let result = Simulation.run(options)
      #expect(result.violation == nil, "\(String(describing: result.violation))")
      #expect(result.linksMade == 0)
    }
  }
}
