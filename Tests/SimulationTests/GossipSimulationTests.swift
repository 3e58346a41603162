import MusterBase
import MusterSimulator
import Testing

/// Entries spread over random graphs reach all nodes soon, at a cost that grows with log(size).
struct GossipSimulationTests {
  static let sizes = Tier.cases([10, 30, 100], and: [300])

  @Test func costDoesNotGrowFasterThanTheLogarithmOfTheSize() {
    let results = Self.sizes.map { GossipSimulation.run(GossipOptions(nodes: $0)) }
    for result in results {
      #expect(result.reachedAll && result.updates == 10, "\(result)")
      #expect(result.median < .milliseconds(200) && result.p99 < .milliseconds(400), "\(result)")
      // An idle node only sends one digest per second.
      #expect(result.idleBytesPerSecond < 150, "\(result)")
    }
    // Among ten nodes, many are the author's neighbours, so the next size is the baseline.
    let base = results[1].bytesPerUpdate
    for (size, result) in zip(Self.sizes, results).dropFirst(2) {
      let doublings = Double(
        (size / Self.sizes[1]).bitWidth - (size / Self.sizes[1]).leadingZeroBitCount)
      #expect(result.bytesPerUpdate < base * (1 + 0.2 * doublings), "\(result)")
    }
  }

  @Test func lossDelaysEntriesAndLosesNone() {
    let clean = GossipSimulation.run(GossipOptions(nodes: 40))
    let lossy = GossipSimulation.run(GossipOptions(nodes: 40, loss: 0.3))
    #expect(clean.reachedAll && lossy.reachedAll)
    #expect(lossy.p99 >= clean.p99)
    #expect(lossy.longest < .seconds(10))
  }

  @Test func theSameSeedIsTheSameRun() {
    let options = GossipOptions(nodes: 20, degree: 3, seed: 7, loss: 0.1, updates: 3)
    #expect(GossipSimulation.run(options) == GossipSimulation.run(options))
  }
}
