import MusterBase
import MusterSimulator
import Testing

/// News over random graphs: everywhere, soon, and at a cost that does not grow with their size.
struct GossipSimulationTests {
  #if DEBUG
    static let sizes = [10, 30, 60]
  #else
    static let sizes = [10, 30, 100, 300]
  #endif

  @Test func costDoesNotGrowFasterThanTheLogarithmOfTheSize() {
    let results = Self.sizes.map { GossipSimulation.run(GossipOptions(nodes: $0)) }
    for result in results {
      #expect(result.reachedAll && result.updates == 10, "\(result)")
      #expect(result.median < .milliseconds(200) && result.p99 < .milliseconds(400), "\(result)")
      // A comparison a second and nothing else.
      #expect(result.idleBytesPerSecond < 150, "\(result)")
    }
    // Among ten, many hear it from its author; the measure is the next size.
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
