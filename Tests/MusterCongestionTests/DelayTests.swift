import MusterBase
import MusterCongestion
import Testing

private let start = Instant.zero + .seconds(100)

struct PacketGroupsTests {
  /// The intervals that follow from packets with these times in milliseconds.
  private func intervals(_ packets: [(sent: Int, arrived: Int)]) -> [[Double]] {
    var groups = PacketGroups()
    return packets.compactMap { packet in
      groups.add(
        sentAt: start + .milliseconds(packet.sent), arrivedAt: start + .milliseconds(packet.arrived)
      ).map { [$0.sending.inMilliseconds, $0.arriving.inMilliseconds] }
    }
  }

  @Test func packetsThatAreSentTogetherAreOneGroup() {
    let packets = [(0, 10), (2, 13), (5, 16), (30, 40), (31, 44), (60, 75), (90, 99)]
    // The last packet of each group counts: 5 and 16, 31 and 44, 60 and 75.
    #expect(intervals(packets) == [[26, 28], [29, 31]])
  }

  /// A wireless link that stands still lets go of all that has queued at once.
  @Test func packetsThatArriveTogetherAfterAStallAreOneGroup() {
    let packets = [
      (0, 10), (20, 30), (40, 100), (60, 101), (80, 102), (120, 140), (150, 170),
    ]
    #expect(intervals(packets) == [[20, 20], [60, 72], [40, 38]])
  }

  @Test func aPacketThatWasOvertakenIsIgnored() {
    let packets = [(0, 10), (20, 30), (10, 35), (40, 50), (60, 70)]
    #expect(intervals(packets) == [[20, 20], [20, 20]])
  }

  @Test func aStepOfTheClockIsNoInterval() {
    let packets = [
      (0, 10), (20, 30), (40, 9_050), (60, 9_070), (80, 9_090), (100, 9_110),
    ]
    #expect(intervals(packets) == [[20, 20], [20, 20], [20, 20]])
    #expect(intervals([(0, 9_010), (20, 9_030), (40, 50), (60, 70), (80, 90)]).count == 2)
  }
}

struct TrendDetectorTests {
  private struct World {
    var detector = TrendDetector()
    var now = start
    var trends: [QueueTrend] = []

    /// Adds groups that are sent 20 ms apart; the delay of each is that much longer than before.
    mutating func add(_ changes: [Double]) {
      for change in changes {
        let arriving = Duration.milliseconds(20) + .seconds(change / 1_000)
        now = now + arriving
        detector.add(
          PacketGroups.Interval(
            sending: .milliseconds(20), arriving: arriving, arrivedAt: now))
        trends.append(detector.trend)
      }
    }
  }

  @Test func aGrowingQueueIsDetectedAndADrainingOne() {
    var world = World()
    world.add([Double](repeating: 0, count: 40))
    #expect(world.trends.allSatisfy { $0 == .steady })
    world.add([Double](repeating: 2, count: 20))
    #expect(world.trends.last == .growing)
    world.add([Double](repeating: -2, count: 30))
    #expect(world.trends.last == .shrinking)
    world.add([Double](repeating: 0, count: 60))
    #expect(world.trends.last == .steady)
  }

  /// Several flows that raise their rates slowly make a slope that the threshold would reach.
  @Test func aQueueThatGrowsSteadilyStaysDetected() {
    var world = World()
    world.add([Double](repeating: 1, count: 1_000))
    #expect(world.trends[100...].allSatisfy { $0 == .growing })
  }

  /// The first threshold would not notice 3 % too much; it falls while delays are even.
  @Test func theThresholdAdaptsToAnEvenPath() {
    var world = World()
    world.add([Double](repeating: 0, count: 40))
    world.add((0..<200).map { 0.6 + ($0 % 2 == 0 ? 0.2 : -0.2) })
    #expect(world.trends.contains(.growing))
  }

  /// The rate was lowered, and the queue still grows, but ever less.
  @Test func aQueueThatGrowsLessAndLessIsLeftToDrain() {
    var world = World()
    world.add([Double](repeating: 0, count: 40))
    world.add((0..<14).map { 3 - 0.2 * Double($0) })
    world.add([Double](repeating: 0, count: 30))
    #expect(world.trends.contains(.growing) && world.trends.last == .steady)
  }
}

struct RateControllerTests {
  private struct World {
    var controller = RateController(
      start: DataRate(kbps: 2_000), limits: DataRate(kbps: 10)...DataRate(kbps: 5_000))
    var now = start

    mutating func update(_ trend: QueueTrend, acknowledged: Double, for time: Duration = .zero) {
      let end = now + time
      repeat {
        controller.update(
          trend, acknowledged: DataRate(kbps: acknowledged), roundTrip: .milliseconds(50), at: now)
        now = now + .milliseconds(100)
      } while now < end
    }

    var rate: Double { controller.rate.kbps }
  }

  @Test func anUnknownPathIsApproachedByAShare() {
    var world = World()
    world.update(.steady, acknowledged: 2_000, for: .seconds(1))
    #expect((2_130...2_170).contains(world.rate), "\(world.rate)")
  }

  /// 4,000 bits per 300 ms, each second: half a packet per response time.
  @Test func aKnownCapacityIsApproachedSlowly() {
    var world = World()
    world.update(.growing, acknowledged: 2_000)
    #expect(abs(world.rate - 1_695) < 0.1)
    world.update(.steady, acknowledged: 1_700, for: .seconds(1))
    #expect((1_715...1_730).contains(world.rate), "\(world.rate)")
  }

  /// Where something else fills the queue, it grows with each probe, and not because of the rate
  /// before.
  @Test(arguments: [(1, 1_000), (14, 1_000), (15, 340)])
  func theEffectOfAProbeCostsNoMoreThanItGave(steps: Int, rate: Double) {
    var world = World()
    world.controller.set(DataRate(kbps: 1_000), at: world.now)
    world.now = world.now + .seconds(2)
    world.controller.set(DataRate(kbps: 2_000), at: world.now)
    world.now = world.now + .milliseconds(100) * steps
    world.update(.growing, acknowledged: 406)
    #expect(abs(world.rate - rate) < 0.2, "\(world.rate)")
    // Only once.
    world.update(.growing, acknowledged: 406)
    #expect(abs(world.rate - 340) < 0.2, "\(world.rate)")
  }

  /// More arrives than the path was found to carry.
  @Test func anotherCapacityIsFoundByAShareAgain() {
    var world = World()
    world.update(.growing, acknowledged: 1_000)
    world.update(.steady, acknowledged: 1_800, for: .seconds(2))
    let before = world.rate
    world.update(.steady, acknowledged: 1_800, for: .seconds(1))
    #expect(world.rate - before > 0.05 * before)
  }

  @Test func aDrainingQueueIsWaitedFor() {
    var world = World()
    world.update(.shrinking, acknowledged: 2_500, for: .seconds(3))
    #expect(world.rate == 2_000)
  }

  @Test func theLimitsAreKept() {
    var world = World()
    world.update(.growing, acknowledged: 1)
    #expect(world.rate == 10)
    world.update(.steady, acknowledged: 90_000, for: .seconds(1))
    #expect(world.rate == 5_000)
  }
}

struct AcknowledgedRateTests {
  /// The rate after packets of 1,250 bytes each 10 ms, 1,000 kbit/s, that arrive at these times.
  private func rate(count: Int, arrival: (Int) -> Int) -> Double? {
    var acknowledged = AcknowledgedRate()
    for index in 0..<count {
      acknowledged.add(
        bytes: 1_250, sentAt: start + .milliseconds(10 * index),
        arrivedAt: start + .milliseconds(arrival(index)))
    }
    return acknowledged.rate?.kbps
  }

  @Test func whatArrivesIsCounted() throws {
    #expect(rate(count: 9) { 100 * $0 } == nil)
    #expect(abs(try #require(rate(count: 10) { 100 * $0 }) - 100) < 1)
    // A burst, such as a keyframe, has no rate.
    #expect(rate(count: 50) { 10 * $0 } == nil)
    #expect(abs(try #require(rate(count: 300) { 10 * $0 + 500 }) - 1_000) < 1)
    #expect(abs(try #require(rate(count: 300) { 20 * $0 }) - 500) < 5)
  }

  /// Packets that arrive faster than they were sent have queued.
  @Test func aBurstIsNoRate() throws {
    let rate = try #require(rate(count: 300) { 10 * $0 + max(0, 2_000 - 7 * $0) })
    #expect(rate < 1_010, "\(rate)")
  }

  /// The path stands still for 300 ms; then the packets arrive at 4,000 kbit/s until it catches up.
  @Test func aStallIsNoLowerRate() throws {
    let rate = try #require(
      rate(count: 110) { $0 < 90 ? 10 * $0 : max(10 * $0, 1_200 + Int(2.5 * Double($0 - 90))) })
    #expect(rate > 950, "\(rate)")
  }

  /// A report that is lost takes a second out of the window, in which packets did arrive.
  @Test func aGapInTheReportsIsNoLowerRate() throws {
    var acknowledged = AcknowledgedRate()
    for index in 0..<200 where !(100..<190).contains(index) {
      acknowledged.add(
        bytes: 1_250, sentAt: start + .milliseconds(10 * index),
        arrivedAt: start + .milliseconds(10 * index), isAfterGap: index == 190)
    }
    #expect(abs(try #require(acknowledged.rate).kbps - 1_000) < 1)
  }

  /// As a receiver may claim.
  @Test func arrivalsInAnotherOrderAreNoHigherRate() throws {
    var acknowledged = AcknowledgedRate()
    for index in 0..<300 {
      acknowledged.add(
        bytes: 1_250, sentAt: start + .milliseconds(10 * (299 - index)),
        arrivedAt: start + .milliseconds(2 * index))
    }
    #expect(try #require(acknowledged.rate) <= DataRate(kbps: 1_000))
  }
}
