import MusterBase
import MusterCongestion
import Testing

/// The estimator and the pacer on the paths of a script. The figures are those that WebRTC's own
/// tests of its estimator accept, where it has such a test.
struct PathControllerTests {
  typealias Network = PathScript.Network

  private static func kbps(_ rate: Double) -> DataRate { DataRate(kbps: rate) }

  @Test(arguments: 1...5 as ClosedRange<UInt64>)
  func theEstimateFollowsTheCapacity(seed: UInt64) {
    var script = PathScript(
      Network(rate: Self.kbps(500), delay: .milliseconds(100)), .video(most: Self.kbps(1_500)),
      seed: seed)
    script.run(for: .seconds(25))
    #expect((350...550).contains(script.meanEstimate(over: .seconds(5))), "seed \(seed)")
    script.network.rate = Self.kbps(800)
    script.run(for: .seconds(20))
    #expect((600...900).contains(script.meanEstimate(over: .seconds(5))), "seed \(seed)")
    script.network.rate = Self.kbps(100)
    script.network.delay = .milliseconds(200)
    script.run(for: .seconds(50))
    #expect((65...115).contains(script.meanEstimate(over: .seconds(5))), "seed \(seed)")
  }

  /// What one path costs and gives, in steady state: the share of its rate that is used, and the
  /// queueing delay.
  @Test(arguments: [60, 150, 250, 600, 1_500, 3_000] as [Double])
  func aNarrowPathIsUsedWithoutAStandingQueue(rate: Double) {
    var script = PathScript(
      Network(rate: Self.kbps(rate), delay: .milliseconds(20)), .video(most: Self.kbps(5_000)))
    script.run(for: .seconds(60))
    let steady = script.samples(from: .seconds(20))
    let sent = steady.map(\.sent).reduce(0, +) / Double(steady.count)
    let queues = steady.map(\.queue).sorted()
    #expect(sent >= 0.8 * rate && sent <= 1.05 * rate, "\(sent) kbit/s")
    // Of a packet of 1,200 bytes at 60 kbit/s, 160 ms are not queueing but sending.
    #expect(queues[queues.count / 2] < 50 + 9_600 / rate)
    #expect(queues[queues.count * 95 / 100] < 150 + 2 * 9_600 / rate)
  }

  @Test func anApplicationThatSendsLittleIsNotBelievedMore() throws {
    var script = PathScript(
      Network(rate: Self.kbps(10_000), delay: .milliseconds(20)), .constant(Self.kbps(400)))
    script.controller.demand = .zero
    script.run(for: .seconds(60))
    let acknowledged = script.samples.compactMap(\.acknowledged)
    let most = try #require(script.samples.map(\.estimate).max())
    #expect(most <= 1.5 * (try #require(acknowledged.max())) + 10)
    #expect((380...420).contains(try #require(script.controller.acknowledgedRate).kbps))
  }

  /// What it wants is found out with padding.
  @Test func demandIsProbedFor() {
    var script = PathScript(
      Network(rate: Self.kbps(5_000), delay: .milliseconds(20)), .constant(Self.kbps(100)))
    script.run(for: .seconds(20))
    #expect(script.controller.estimate < Self.kbps(330))
    #expect(script.controller.isApplicationLimited && script.padding == 0)
    script.controller.demand = Self.kbps(2_000)
    script.run(for: .seconds(5))
    #expect(script.controller.estimate >= Self.kbps(2_000))
    #expect(script.padding > 0)
  }

  @Test func aFreePathIsFoundWithinASecond() {
    var script = PathScript(
      Network(rate: Self.kbps(10_000), delay: .milliseconds(20)), .video(most: Self.kbps(2_500)))
    script.run(for: .seconds(1))
    #expect(script.controller.estimate >= Self.kbps(2_500))
  }

  /// No cluster is sent at more than 16 times the demand, and a free path returns what was sent.
  @Test func aProbeMeasuresTheRateAtWhichItWasSent() throws {
    var script = PathScript(
      Network(rate: Self.kbps(30_000), delay: .milliseconds(20)), .constant(Self.kbps(50)))
    script.controller.demand = Self.kbps(800)
    script.run(for: .seconds(3))
    let most = try #require(script.samples.map(\.estimate).max())
    #expect((0.95 * 12_800...1.05 * 12_800).contains(most), "\(most)")
  }

  @Test(arguments: 1...5 as ClosedRange<UInt64>)
  func thePathIsFoundAgainAfterADip(seed: UInt64) {
    var script = PathScript(
      Network(rate: Self.kbps(3_000), delay: .milliseconds(20)), .video(most: Self.kbps(2_500)),
      seed: seed)
    script.run(for: .seconds(20))
    #expect(script.controller.estimate >= Self.kbps(2_500))
    script.network.rate = Self.kbps(600)
    script.run(for: .seconds(20))
    // The queue that the old rate has filled drains.
    let dip = script.samples(from: .seconds(24))
    #expect(dip.allSatisfy { $0.queue < 100 && $0.estimate < 750 }, "seed \(seed)")
    script.network.rate = Self.kbps(3_000)
    script.run(for: .seconds(5))
    #expect(script.controller.estimate >= Self.kbps(2_400), "seed \(seed)")
  }

  /// A sender that ignores the estimate keeps the queue full.
  @Test(arguments: [600, 2_000] as [Double])
  func theEstimateOfAnOverloadedPathIsItsRate(rate: Double) throws {
    var script = PathScript(
      Network(rate: Self.kbps(rate), delay: .milliseconds(20)), .constant(Self.kbps(3 * rate)))
    script.controller.demand = .zero
    // The circuit breaker would open at 15 s.
    script.run(for: .seconds(14))
    for sample in script.samples(from: .seconds(5)) {
      #expect((0.75 * rate...1.25 * rate).contains(sample.estimate), "\(sample)")
      #expect(abs(try #require(sample.estimatedQueue) - sample.queue) < 60, "\(sample)")
    }
  }

  @Test func silenceLowersTheEstimate() {
    var script = PathScript(
      Network(rate: Self.kbps(3_000), delay: .milliseconds(20)), .video(most: Self.kbps(2_500)))
    script.run(for: .seconds(10))
    let before = script.controller.estimate
    script.network.reportLoss = 1
    script.run(for: .milliseconds(2_800))
    #expect(script.controller.estimate == before)
    script.run(for: .seconds(7))
    #expect(script.controller.estimate <= before * 0.27)
    script.network.reportLoss = 0
    script.run(for: .seconds(5))
    #expect(script.controller.estimate >= Self.kbps(2_000))
  }

  /// Both directions of a narrow path may be full from the first packet on.
  @Test func silenceFromTheStartLowersTheEstimateSoon() {
    let most = [(900, 300.0), (1_600, 110), (3_100, 40)]
    for (milliseconds, expected) in most {
      var script = PathScript(
        Network(rate: Self.kbps(3_000), delay: .milliseconds(20), reportLoss: 1),
        .video(most: Self.kbps(2_500)))
      script.run(for: .milliseconds(milliseconds))
      let estimate = script.controller.estimate.kbps
      #expect((0.6 * expected...expected).contains(estimate), "\(milliseconds): \(estimate)")
    }
  }

  /// Audio that overtakes video shows no queue; the delay of video still holds the rate to what the
  /// path carries.
  @Test(arguments: [300, 1_000] as [Double])
  func audioWithAQueueOfItsOwnHidesNoOther(kbps: Double) {
    var script = PathScript(
      PathScript.Network(
        rate: DataRate(kbps: kbps), delay: .milliseconds(10), queue: .milliseconds(400),
        audioFirst: true),
      .video(most: DataRate(kbps: 4_000)))
    script.run(for: .seconds(30))
    let late = script.samples(from: .seconds(10))
    let queues = late.map(\.queue).sorted()
    #expect(queues[queues.count * 9 / 10] < 300, "\(queues)")
    #expect((0.6 * kbps...1.1 * kbps).contains(script.meanEstimate(over: .seconds(20))))
  }

  /// A queue that is full from the first packet on looks like a longer path.
  @Test(arguments: [(120, 65, true), (120, 55, false), (90, 60, false)])
  func aReportThatMostIsLostLowersTheEstimate(
    packets: Int, lost: Int, isLowered: Bool
  ) throws {
    var controller = PathController()
    var now = Instant.zero + .seconds(50)
    func report(_ fates: [Bool]) -> PathReport {
      let results = fates.enumerated().map { index, arrives in
        let sentAt = now + .milliseconds(10 * index)
        return PacketResult(
          bytes: 250, sentAt: sentAt,
          fate: arrives ? .arrived(at: sentAt + .milliseconds(50)) : .lost)
      }
      now = now + .milliseconds(10 * fates.count)
      return PathReport(route: PathScript.route, results: results, roundTrip: .milliseconds(100))
    }
    for _ in 0..<10 { _ = controller.reported(report(.init(repeating: true, count: 10)), at: now) }
    let fates = (0..<packets).map { $0 * lost / packets == ($0 + 1) * lost / packets }
    _ = controller.reported(report(fates), at: now)
    let acknowledged = try #require(controller.acknowledgedRate)
    // Otherwise the losses lower it as well, to what arrives.
    #expect((controller.estimate < acknowledged * 0.9) == isLowered, "\(controller.estimate)")
  }

  /// Such a path may carry nothing, or what is sent may be what fills it.
  @Test func longSilenceEndsVideoForAWhile() {
    var script = PathScript(
      Network(rate: Self.kbps(3_000), delay: .milliseconds(20)), .video(most: Self.kbps(2_500)))
    script.run(for: .seconds(10))
    script.network.reportLoss = 1
    script.run(for: .seconds(9))
    #expect(script.controller.estimate > Self.kbps(500))
    script.run(for: .seconds(3))
    let least = PathController.limits.lowerBound
    #expect(script.controller.estimate == least)
    script.network.reportLoss = 0
    script.run(for: .seconds(26))
    #expect(script.controller.estimate == least)
    script.run(for: .seconds(5))
    #expect(script.controller.estimate >= Self.kbps(2_000))
  }

  @Test func theStartEndsWithoutAnyReport() {
    var script = PathScript(
      Network(rate: Self.kbps(3_000), delay: .milliseconds(20), reportLoss: 1),
      .video(most: Self.kbps(2_500)))
    script.run(for: .seconds(9))
    #expect(script.controller.isStarting(at: PathScript.start + script.time))
    script.run(for: .seconds(3))
    #expect(!script.controller.isStarting(at: PathScript.start + script.time))
    #expect(script.controller.estimate == PathController.limits.lowerBound)
  }

  /// A sender that does not heed the estimate: ten times what TCP would send with packets of 1,000
  /// bytes, a round trip of 200 ms and a loss of a fifth are 1,095 kbit/s.
  @Test(arguments: [(10, 2, false), (15, 3, true), (15, 0, false)])
  func aPathThatStaysOverloadedIsGivenUpForAWhile(packets: Int, lost: Int, isGivenUp: Bool) {
    var controller = PathController()
    controller.demand = Self.kbps(5_000)
    var now = Instant.zero + .seconds(50)
    /// Sends these packets every 100 ms, and reports on them.
    func send(_ packets: Int, lost: Int, for time: Duration) -> [ProbeCluster] {
      let end = now + time
      var clusters: [ProbeCluster] = []
      while now < end {
        let results = (0..<packets).map { index in
          PacketResult(
            bytes: 1_000, sentAt: now, fate: index < lost ? .lost : .arrived(at: now))
        }
        now = now + .milliseconds(100)
        controller.sent(bytes: 1_000, asks: true, at: now)
        let report = PathReport(
          route: PathScript.route, results: results, roundTrip: .milliseconds(200))
        clusters += controller.reported(report, at: now).map { [$0] } ?? []
      }
      return clusters
    }
    let least = PathController.limits.lowerBound
    _ = send(packets, lost: lost, for: .seconds(12))
    // Two of the intervals, to 15 and 20 s, have less.
    _ = send(1, lost: 0, for: .seconds(5))
    _ = send(packets, lost: lost, for: .seconds(18))
    #expect(controller.estimate > least)
    _ = send(packets, lost: lost, for: .seconds(1))
    #expect((controller.estimate == least) == isGivenUp)
    guard isGivenUp else { return }
    #expect(send(1, lost: 0, for: .seconds(29)).isEmpty)
    #expect(controller.estimate == least)
    #expect(!send(1, lost: 0, for: .seconds(2)).isEmpty)
    #expect(controller.estimate >= PathController.start)
  }

  /// Long before silence lowers the estimate, no more is sent than fits.
  @Test func withoutReportsNewPacketsWait() {
    var controller = PathController()
    let start = Instant.zero + .seconds(50)
    func report(until sentAt: Instant) -> PathReport {
      let result = PacketResult(bytes: 750, sentAt: sentAt, fate: .arrived(at: sentAt))
      return PathReport(
        route: PathScript.route, results: [result], roundTrip: .milliseconds(50))
    }
    /// Sends 300 kbit/s, which is the estimate, from 20 ms on for this time.
    func send(for milliseconds: Int) -> [(time: Double, excess: Duration)] {
      stride(from: 20, through: milliseconds, by: 20).map { time in
        let now = start + .milliseconds(time)
        controller.sent(bytes: 750, asks: true, at: now)
        return (Double(time), controller.excessInFlight(at: now))
      }
    }
    // Nothing is known before the first report.
    #expect(send(for: 1_000).allSatisfy { $0.excess == .zero })

    controller = PathController()
    controller.sent(bytes: 750, asks: true, at: start)
    // After five reports, silence lowers the estimate after 3 s rather than 1 s.
    for _ in 0..<5 { _ = controller.reported(report(until: start), at: start + .milliseconds(50)) }
    for (time, excess) in send(for: 1_000) {
      // The round trip and the allowance are 400 ms.
      #expect(abs(excess.inMilliseconds - max(time - 400, 0)) < 21, "\(time) ms")
    }
    // If nothing follows, no report can say that they were lost.
    let end = start + .milliseconds(1_000)
    #expect(controller.excessInFlight(at: end + .milliseconds(999)) > .milliseconds(590))
    #expect(controller.excessInFlight(at: end + .milliseconds(1_700)) == .zero)

    _ = controller.reported(report(until: start + .milliseconds(900)), at: end)
    #expect(controller.excessInFlight(at: end) == .zero)
  }

  /// Nor is one in which the last report is lost.
  @Test(arguments: [0, 1] as [Double])
  func aPauseIsNoSilence(reportLoss: Double) {
    var script = PathScript(
      Network(rate: Self.kbps(3_000), delay: .milliseconds(20)), .constant(Self.kbps(1_000)))
    script.run(for: .seconds(10))
    let before = script.controller.estimate
    script.network.reportLoss = reportLoss
    script.run(for: .milliseconds(500))
    script.source = .constant(.zero)
    script.run(for: .seconds(60))
    #expect(script.controller.estimate == before)
    script.network.reportLoss = 0
    script.source = .constant(Self.kbps(1_000))
    script.run(for: .seconds(1))
    #expect(script.controller.estimate >= before)
  }

  /// As when the route changes in a pause.
  @Test func aLongerDelayAfterAPauseIsNoGrowingQueue() {
    var script = PathScript(
      Network(rate: Self.kbps(3_000), delay: .milliseconds(20)), .constant(Self.kbps(1_000)))
    script.run(for: .seconds(10))
    let before = script.controller.estimate
    script.source = .constant(.zero)
    script.run(for: .seconds(3))
    script.network.delay = .milliseconds(400)
    script.source = .constant(Self.kbps(1_000))
    script.run(for: .seconds(5))
    #expect(script.controller.estimate >= before)
  }

  /// A few packets say less than all others.
  @Test func aSlowProbeLowersTheEstimateOnlyToWhatArrives() throws {
    var controller = PathController()
    controller.demand = DataRate(kbps: 5_000)
    let start = Instant.zero + .seconds(50)
    var clusters: [ProbeCluster] = []
    // 800 kbit/s for 3 s, and then a cluster that arrives at 80 kbit/s.
    for number in 0..<300 {
      let sentAt = start + .milliseconds(10 * number)
      controller.sent(bytes: 1_000, asks: true, at: sentAt)
      let result = PacketResult(bytes: 1_000, sentAt: sentAt, fate: .arrived(at: sentAt))
      let report = PathReport(route: PathScript.route, results: [result], roundTrip: .zero)
      clusters += controller.reported(report, at: sentAt).map { [$0] } ?? []
    }
    let id = try #require(clusters.first).id
    let sentAt = start + .seconds(3)
    let results = (0..<6).map { index in
      PacketResult(
        bytes: 1_000, sentAt: sentAt + .milliseconds(5 * index), probe: id,
        fate: .arrived(at: sentAt + .milliseconds(100 * index)))
    }
    let report = PathReport(route: PathScript.route, results: results, roundTrip: .zero)
    _ = controller.reported(report, at: sentAt + .seconds(1))
    let acknowledged = try #require(controller.acknowledgedRate)
    #expect(controller.estimate >= acknowledged * 0.84)
  }

  @Test func lostReportsDoNotLowerTheEstimate() {
    var script = PathScript(
      Network(rate: Self.kbps(1_000), delay: .milliseconds(50), reportLoss: 0.3),
      .video(most: Self.kbps(2_500)))
    script.run(for: .seconds(40))
    #expect((750...1_100).contains(script.meanEstimate(over: .seconds(20))))
  }

  @Test func aJitteryPathIsUsed() {
    var script = PathScript(
      Network(rate: Self.kbps(3_000), delay: .milliseconds(20), jitter: .milliseconds(15)),
      .video(most: Self.kbps(2_000)))
    script.run(for: .seconds(40))
    #expect(script.meanEstimate(over: .seconds(20)) >= 1_600)
  }

  /// As when a receiver is suspended.
  @Test(arguments: [1, 2, 3_600])
  func aStepOfTheReceiversClockChangesLittle(seconds: Int) {
    var script = PathScript(
      Network(rate: Self.kbps(3_000), delay: .milliseconds(20)), .constant(Self.kbps(1_000)))
    script.run(for: .seconds(10))
    let before = script.controller.estimate
    script.clockOffset = script.clockOffset + .seconds(seconds)
    script.run(for: .seconds(40))
    #expect(script.controller.estimate >= before * 0.7, "\(seconds) s")
  }
}
