import MusterBase
import MusterCongestion
import Testing

/// A loss estimator, and a sender of packets of 1,000 bytes on a virtual clock.
private struct World {
  var estimator = LossEstimator(least: DataRate(kbps: 10))
  var now = Instant.zero + .seconds(100)
  var limits: [Double?] = []
  private var random = PRNG(seed: 1)

  /// Sends at a rate for a time; each packet is lost with a probability.
  mutating func send(
    kbps: Double, loss: Double, delayEstimate: Double = 2_000, acknowledged: Double? = nil,
    isApplicationLimited: Bool = false, for time: Duration
  ) {
    let end = now + time
    while now < end {
      let results = (0..<10).map { _ in
        now = now + .seconds(8 / kbps)
        let isLost = Double(random.below(10_000)) < loss * 10_000
        return PacketResult(bytes: 1_000, sentAt: now, fate: isLost ? .lost : .arrived(at: now))
      }
      estimator.update(
        results, delayEstimate: DataRate(kbps: delayEstimate),
        acknowledged: DataRate(kbps: acknowledged ?? kbps * (1 - loss)),
        isApplicationLimited: isApplicationLimited)
      limits.append(estimator.limit?.kbps)
    }
  }
}

struct LossModelTests {
  /// Below the limit all losses are inherent, up to 5 % and the share that 100 kbit/s are of it.
  @Test(arguments: [(0.0, 0.001), (0.05, 0.05), (0.1, 0.1), (0.4, 0.15)])
  func inherentLossIsFitted(loss: Double, fitted: Double) {
    let observation = LossObservation(
      bytes: 100_000, lostBytes: Int(100_000 * loss), rate: DataRate(kbps: 800))
    var model = LossModel(limit: DataRate(kbps: 1_000), inherentLoss: 0.01)
    for _ in 0..<50 { model.fitInherentLoss(to: [(observation, weight: 1)]) }
    #expect(abs(model.inherentLoss - fitted) < 0.002, "\(model.inherentLoss)")
  }

  /// Of 2,000 kbit/s the half is lost beyond the limit, and a tenth of the rest.
  @Test func lossBeyondTheLimitIsNotInherent() {
    let observation = LossObservation(
      bytes: 100_000, lostBytes: 55_000, rate: DataRate(kbps: 2_000))
    var model = LossModel(limit: DataRate(kbps: 1_000), inherentLoss: 0.01)
    for _ in 0..<50 { model.fitInherentLoss(to: [(observation, weight: 1)]) }
    #expect((0.08...0.12).contains(model.inherentLoss), "\(model.inherentLoss)")
  }
}

struct LossEstimatorTests {
  @Test func nothingIsLimitedWithoutLoss() {
    var world = World()
    world.send(kbps: 1_000, loss: 0, for: .seconds(10))
    world.send(kbps: 1_000, loss: 0.005, for: .seconds(10))
    #expect(world.estimator.state == .delayLimited && world.limits.allSatisfy { $0 == nil })
  }

  /// The path loses 5 % whatever is sent.
  @Test func inherentLossIsLearnt() {
    var world = World()
    world.send(kbps: 1_500, loss: 0.05, for: .seconds(60))
    #expect((0.03...0.07).contains(world.estimator.averageLoss))
    #expect(world.estimator.limit.map { $0 > DataRate(kbps: 1_400) } ?? true)
  }

  /// A burst of losses does not last, whatever the average.
  @Test func lossLastsIfNoObservationIsWithoutIt() {
    var world = World()
    world.send(kbps: 1_600, loss: 1, for: .milliseconds(600))
    #expect(world.estimator.lastingLoss == 0, "two observations are too few")
    world.send(kbps: 1_600, loss: 1, for: .milliseconds(300))
    #expect(world.estimator.lastingLoss == 1)
    world.send(kbps: 1_600, loss: 0, for: .milliseconds(400))
    #expect(world.estimator.lastingLoss == 0 && world.estimator.averageLoss > 0.5)
  }

  /// Half of what is sent arrives.
  @Test func lossBeyondTheCapacityLimitsAtOnce() throws {
    var world = World()
    world.send(kbps: 1_000, loss: 0.5, for: .seconds(2))
    let limit = try #require(world.estimator.limit)
    #expect(world.estimator.state == .decreasing)
    #expect(limit >= DataRate(kbps: 490) && limit <= DataRate(kbps: 600), "\(limit)")
  }

  /// 30 % of loss calls for less, whatever arrives: 100 kbit/s divided by 25 %.
  @Test func heavyLossIsBounded() throws {
    var world = World()
    world.send(kbps: 1_000, loss: 0.3, acknowledged: 100, for: .seconds(3))
    #expect(try #require(world.estimator.limit) <= DataRate(kbps: 480))
  }

  @Test func theLimitFallsToNoLessThanWhatArrives() throws {
    var world = World()
    world.send(kbps: 1_000, loss: 0.9, acknowledged: 700, for: .seconds(5))
    #expect(try #require(world.estimator.limit) >= DataRate(kbps: 700))
  }

  @Test func theLimitIsHeldBeforeItRises() throws {
    var world = World()
    world.send(kbps: 1_000, loss: 0, for: .seconds(2))
    world.send(kbps: 1_000, loss: 0.5, for: .seconds(1))
    let low = try #require(world.limits.last ?? nil)
    let end = world.limits.count
    for _ in 0..<40 {
      let limit = world.estimator.limit?.kbps ?? 2_000
      world.send(kbps: limit, loss: 0, for: .milliseconds(500))
    }
    // Within 300 ms nothing rises; in the end all is as before.
    let soon = world.limits[end...].prefix(2)
    #expect(soon.allSatisfy { $0.map { $0 <= low } ?? false }, "\(soon)")
    #expect(world.estimator.state == .delayLimited && world.estimator.limit == nil)
  }

  /// The limit does not rise above that of the first decrease, each time for longer.
  @Test func theHoldGrows() throws {
    var world = World()
    world.send(kbps: 4_000, loss: 0, delayEstimate: 20_000, for: .seconds(2))
    var holds: [Double] = []
    for _ in 0..<7 {
      let before = world.estimator.limit
      let rate = before?.kbps ?? 4_000
      while world.estimator.limit == before {
        world.send(kbps: rate, loss: 0.3, delayEstimate: 20_000, for: .milliseconds(50))
      }
      let held = try #require(world.estimator.limit)
      let from = world.now
      for _ in 0..<300 where world.estimator.limit.map({ $0 <= held }) ?? false {
        world.send(kbps: held.kbps, loss: 0, delayEstimate: 20_000, for: .milliseconds(100))
      }
      holds.append((world.now - from).inSeconds)
      world.send(kbps: held.kbps, loss: 0, delayEstimate: 20_000, for: .seconds(5))
    }
    #expect(holds[0] < 5 && holds[6] > 9, "\(holds)")
  }

  /// Packets far below the limit say nothing about it; a probe does, unless much is lost.
  @Test func aProbeRaisesTheLimit() throws {
    var world = World()
    world.send(kbps: 1_000, loss: 0, for: .seconds(2))
    world.send(kbps: 1_000, loss: 0.5, for: .seconds(3))
    let low = try #require(world.estimator.limit)
    world.estimator.probed(DataRate(kbps: 1_500))
    #expect(world.estimator.isLossy && world.estimator.limit == low)
    world.send(kbps: 20, loss: 0, isApplicationLimited: true, for: .seconds(60))
    #expect(!world.estimator.isLossy)
    #expect(try #require(world.estimator.limit) < DataRate(kbps: 1_000))
    world.estimator.probed(DataRate(kbps: 1_500))
    #expect(world.estimator.limit == DataRate(kbps: 1_500))
    world.send(kbps: 20, loss: 0, isApplicationLimited: true, for: .seconds(10))
    #expect(world.estimator.limit.map { $0 >= DataRate(kbps: 1_500) } ?? true)
  }

  /// A packet that arrives after all was never lost.
  @Test func lateArrivalsAreNoLosses() {
    var world = World()
    for _ in 0..<20 {
      var results: [PacketResult] = []
      for index in 0..<20 {
        world.now = world.now + .milliseconds(15)
        let fate: PacketResult.Fate = index % 4 == 0 ? .lost : .arrived(at: world.now)
        results.append(PacketResult(bytes: 1_000, sentAt: world.now, fate: fate))
        if index % 4 == 2 {
          results.append(PacketResult(bytes: 1_000, sentAt: world.now, fate: .arrivedLate))
        }
      }
      world.estimator.update(
        results, delayEstimate: DataRate(kbps: 1_000), acknowledged: DataRate(kbps: 500),
        isApplicationLimited: false)
    }
    #expect(world.estimator.averageLoss == 0 && world.estimator.limit == nil)
  }
}
