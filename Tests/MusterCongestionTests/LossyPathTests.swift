import MusterBase
import MusterCongestion
import Testing

/// The estimator and the pacer on paths that lose packets at any rate.
struct LossyPathTests {
  typealias Network = PathScript.Network

  private static func kbps(_ rate: Double) -> DataRate { DataRate(kbps: rate) }

  @Test(arguments: 1...5 as ClosedRange<UInt64>)
  func randomLossDoesNotLowerTheEstimateBelowWhatIsSent(seed: UInt64) {
    var script = PathScript(
      Network(rate: Self.kbps(5_000), delay: .milliseconds(20), loss: 0.1),
      .video(most: Self.kbps(700)), seed: seed)
    script.run(for: .seconds(60))
    let steady = script.samples(from: .seconds(10))
    let sent = steady.map(\.sent).reduce(0, +) / Double(steady.count)
    #expect(sent > 500, "seed \(seed): \(sent)")
    #expect(script.meanEstimate(over: .seconds(50)) >= 0.8 * sent, "seed \(seed)")
    #expect((0.06...0.14).contains(script.controller.lossWithoutQueue))
  }

  /// With a fifth lost, the estimate stays near to `balance` by the excess, 667 kbit/s.
  @Test(arguments: 1...5 as ClosedRange<UInt64>)
  func heavyRandomLossDoesNotEndTheVideo(seed: UInt64) {
    var script = PathScript(
      Network(rate: Self.kbps(5_000), delay: .milliseconds(20), loss: 0.2),
      .video(most: Self.kbps(1_000)), seed: seed)
    script.run(for: .seconds(60))
    let estimates = script.samples(from: .seconds(10)).map(\.estimate)
    #expect((estimates.min() ?? 0) > 100, "seed \(seed)")
    #expect((400...1_000).contains(script.meanEstimate(over: .seconds(50))), "seed \(seed)")
    #expect((0.12...0.28).contains(script.controller.lossWithoutQueue))
  }

  /// As long as no queue shows that the path is full.
  @Test(arguments: 1...5 as ClosedRange<UInt64>)
  func packetsOfALossyPathLeaveFaster(seed: UInt64) {
    for (loss, rate, isFaster) in [(0.2, 5_000.0, true), (0, 5_000, false), (0.2, 300, false)] {
      let network = Network(rate: Self.kbps(rate), delay: .milliseconds(20), loss: loss)
      let source: PathScript.Source =
        rate > 300 ? .video(most: Self.kbps(1_000)) : .constant(Self.kbps(800))
      var script = PathScript(network, source, seed: seed)
      script.run(for: .seconds(5))
      let factors = (0..<15).map { _ in
        script.run(for: .seconds(1))
        return script.controller.pacingRate.kbps / script.controller.estimate.kbps
      }
      #expect(factors.allSatisfy { $0 >= 1 && $0 <= 2 }, "\(seed), \(loss): \(factors)")
      #expect(factors.contains { $0 > 1.2 } == isFaster, "\(seed), \(loss): \(factors)")
    }
  }

  /// A queue that drops packets is no reason to leave room for retransmissions.
  @Test func lossesOfAFullQueueAreNotThoseWithoutOne() {
    var script = PathScript(
      Network(rate: Self.kbps(300), delay: .milliseconds(20)), .constant(Self.kbps(600)))
    script.run(for: .seconds(10))
    #expect(script.controller.queueDelay ?? .zero > .milliseconds(50))
    #expect(script.controller.lossWithoutQueue == 0)
  }
}
