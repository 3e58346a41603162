import MusterBase
import MusterMedia
import Testing

private typealias Receiver = UplinkPlan.Receiver

/// A receiver that could use at most this many kbit/s, of a layer of this height.
private func receiver(
  _ most: Int, least: Int = 50, height: Int = 360, hasScreen: Bool = false
) -> UplinkPlan.Receiver {
  let pixels = VideoSize(width: height * 16 / 9, height: height).pixels
  return .init(rank: .init(hasScreen: hasScreen, pixels: pixels), least: least, most: most)
}

struct UplinkPlanTests {
  @Test func equalsGetTheSame() {
    #expect(UplinkPlan.shares(of: 900, among: [receiver(800), receiver(800)]) == [450, 450])
    #expect(UplinkPlan.shares(of: 40, among: [receiver(800), receiver(800)]) == [20, 20])
  }

  @Test func whatOneCannotUseIsLeftToTheOthers() {
    let receivers = [receiver(800), receiver(100), receiver(800)]
    #expect(UplinkPlan.shares(of: 900, among: receivers) == [400, 100, 400])
    #expect(UplinkPlan.shares(of: 5_000, among: receivers) == [800, 100, 800])
  }

  @Test func everyoneGetsTheSmallestLayerBeforeTheLargestRequestGetsMore() {
    let receivers = [receiver(200, height: 180), receiver(800), receiver(200, height: 180)]
    #expect(UplinkPlan.shares(of: 120, among: receivers) == [40, 40, 40])
    #expect(UplinkPlan.shares(of: 600, among: receivers) == [50, 500, 50])
    #expect(UplinkPlan.shares(of: 1_000, among: receivers) == [100, 800, 100])
  }

  @Test func aScreenGoesBeforeCameras() {
    let receivers = [receiver(2_000, height: 720), receiver(700, hasScreen: true)]
    #expect(UplinkPlan.shares(of: 800, among: receivers) == [100, 700])
  }

  @Test func withoutReceiversOrRoomThereAreNoShares() {
    #expect(UplinkPlan.shares(of: 800, among: []) == [])
    #expect(UplinkPlan.shares(of: 0, among: [receiver(800)]) == [0])
    #expect(UplinkPlan.shares(of: -5, among: [receiver(800)]) == [0])
  }

  @Test(arguments: 0..<50) func sharesKeepToTheBudget(seed: UInt64) {
    var prng = PRNG(seed: seed)
    let receivers = (0..<1 + prng.below(20)).map { _ in
      receiver(
        prng.below(1_000), least: prng.below(100), height: [90, 180, 360][prng.below(3)],
        hasScreen: prng.below(5) == 0)
    }
    let budget = prng.below(8_000)
    let shares = UplinkPlan.shares(of: budget, among: receivers)
    let sum = shares.reduce(0, +)
    let most = receivers.reduce(0) { $0 + $1.most }
    #expect(sum <= budget && sum >= min(budget, most) - receivers.count, "seed \(seed)")
    for (a, share) in zip(receivers, shares) {
      #expect(share >= 0 && share <= a.most, "seed \(seed)")
      // Nobody has less than one that ranks lower, or the same, unless it needs no more.
      for (b, other) in zip(receivers, shares) where a.rank >= b.rank && share < other - 1 {
        #expect(share == a.most || other <= b.least, "seed \(seed)")
      }
    }
  }
}
