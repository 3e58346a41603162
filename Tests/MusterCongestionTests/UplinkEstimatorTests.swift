import MusterBase
import MusterCongestion
import Testing

/// Two paths or more through one uplink, whose packets are reported every 100 ms.
private struct Uplink {
  var estimator = UplinkEstimator()
  var now = Instant.zero + .seconds(10)
  /// What it carries, and what each path sends.
  var rate: DataRate
  /// The time by which the packets of a path wait in any case.
  var wait: (_ path: Int) -> Duration = { _ in .zero }
  var isOverused = true
  /// What the estimates of the paths come to.
  var believed = DataRate.zero
  /// Whether the packets that are sent are reported.
  var isReporting = true
  private(set) var learnt: [Double] = []

  private var busyUntil = Instant.zero
  /// The packets of each path that no report has, and the times at which they leave the uplink.
  private var unreported: [[(result: PacketResult, leavesAt: Instant)]]

  init(kbps: Double, paths: Int = 2) {
    rate = DataRate(kbps: kbps)
    unreported = Array(repeating: [], count: paths)
  }

  /// Sends packets of 250 bytes at this rate in all, one path after the other.
  mutating func send(_ sending: DataRate, for time: Duration, wanted: Double = 10_000) {
    let end = now + time
    let interval = Duration.seconds(250 / sending.bytes(in: .seconds(1)))
    var (path, reportAt) = (0, now + .milliseconds(100))
    while now < end {
      let leavesAt = max(busyUntil, now) + .seconds(250 / rate.bytes(in: .seconds(1)))
      busyUntil = leavesAt
      // The clocks of the receivers differ, and so do the lengths of the paths.
      let arrivedAt = leavesAt + wait(path) + .seconds(Double(100 * path))
      if isReporting {
        let result = PacketResult(bytes: 250, sentAt: now, fate: .arrived(at: arrivedAt))
        unreported[path].append((result, leavesAt + wait(path)))
      }
      path = (path + 1) % unreported.count
      now = now + interval
      if now >= reportAt {
        report(wanted: DataRate(kbps: wanted))
        reportAt = now + .milliseconds(100)
      }
    }
  }

  private mutating func report(wanted: DataRate) {
    for path in unreported.indices {
      let arrived = unreported[path].filter { $0.leavesAt <= now }
      unreported[path].removeAll { $0.leavesAt <= now }
      let transmission = Duration.seconds(250 / rate.bytes(in: .seconds(1)))
      estimator.reported(
        arrived.map(\.result), leastTransit: .seconds(Double(100 * path)) + transmission, at: now)
    }
    let settled = now + .milliseconds(-150)
    if estimator.update(
      isOverused: isOverused, believed: believed, settled: settled, at: now)
    {
      learnt.append(estimator.rate?.kbps ?? 0)
    }
    estimator.grow(to: wanted, at: now)
  }
}

struct UplinkEstimatorTests {
  @Test(arguments: [100, 1_000, 20_000] as [Double], [2, 5]) func aBusyUplinkShowsWhatItCarries(
    kbps: Double, paths: Int
  ) {
    var uplink = Uplink(kbps: kbps, paths: paths)
    uplink.send(uplink.rate * 0.5, for: .seconds(5))
    #expect(uplink.estimator.rate == nil)
    uplink.send(uplink.rate * 1.5, for: .seconds(1))
    #expect(uplink.learnt.count == 1)
    // 92 % are kept; a slot of 20 ms holds one packet more or less.
    let share = (uplink.learnt.first ?? 0) / kbps
    #expect((0.83...1.01).contains(share), "\(share)")
  }

  /// As from a receiver whose clock jumps, or that lies.
  @Test func packetsThatLeaveInTheFutureHideNothing() {
    var uplink = Uplink(kbps: 1_000)
    for hours in 1...100 {
      let result = PacketResult(
        bytes: 250, sentAt: uplink.now,
        fate: .arrived(at: uplink.now + .seconds(3_600.02 * Double(hours))))
      uplink.estimator.reported([result], leastTransit: .zero, at: uplink.now)
    }
    uplink.send(uplink.rate * 1.5, for: .seconds(1))
    #expect((830...1_010).contains(uplink.learnt.first ?? 0), "\(uplink.learnt)")
  }

  /// Delays grow for another reason, such as a network that has just changed: nothing fills it.
  @Test func littleThatIsSentShowsNothing() {
    var uplink = Uplink(kbps: 1_000)
    uplink.believed = DataRate(kbps: 3_000)
    uplink.send(uplink.rate * 1.5, for: .seconds(3))
    #expect(uplink.estimator.rate == nil)
    // Once the estimates have fallen, it is what the uplink carries.
    uplink.believed = DataRate(kbps: 2_000)
    uplink.send(uplink.rate * 1.5, for: .seconds(1))
    #expect((830...1_010).contains(uplink.learnt.first ?? 0), "\(uplink.learnt)")
  }

  @Test func aQueueThatDoesNotGrowShowsNothing() {
    var uplink = Uplink(kbps: 1_000)
    uplink.isOverused = false
    uplink.send(uplink.rate * 1.5, for: .seconds(3))
    #expect(uplink.estimator.rate == nil)
  }

  @Test func aPathWithoutAQueueShowsThatTheUplinkIsNotBusy() {
    var uplink = Uplink(kbps: 100_000, paths: 3)
    uplink.wait = { $0 == 0 ? .zero : .milliseconds(80) }
    uplink.send(DataRate(kbps: 1_000), for: .seconds(3))
    #expect(uplink.estimator.rate == nil)
  }

  /// As when the reports begin while packets already queue.
  @Test func whatLeftBeforeTheFirstReportDoesNotCountAsNothing() {
    var uplink = Uplink(kbps: 1_000)
    uplink.isReporting = false
    uplink.send(uplink.rate * 2, for: .milliseconds(300))
    uplink.isReporting = true
    uplink.send(uplink.rate * 1.1, for: .seconds(1))
    #expect(uplink.learnt.count == 1)
    #expect((830...1_010).contains(uplink.learnt.first ?? 0), "\(uplink.learnt)")
  }

  @Test func theRateRisesMoreAndMoreRarely() {
    var uplink = Uplink(kbps: 1_000)
    uplink.send(uplink.rate * 1.2, for: .seconds(1))
    let first = uplink.now
    // As much is sent as the rate allows.
    for _ in 0..<1_500 {
      uplink.isOverused = uplink.estimator.rate.map { $0 > uplink.rate } ?? true
      uplink.send(uplink.estimator.rate ?? uplink.rate, for: .milliseconds(100))
    }
    #expect(uplink.now - first >= .seconds(150))
    #expect((2...6).contains(uplink.learnt.count), "\(uplink.learnt)")
    #expect(uplink.learnt.allSatisfy { (830...1_010).contains($0) }, "\(uplink.learnt)")
  }

  @Test func anUplinkThatCarriesMoreIsUsedBeforeLong() {
    var uplink = Uplink(kbps: 1_000)
    uplink.send(uplink.rate * 1.2, for: .seconds(1))
    uplink.rate = DataRate(kbps: 100_000)
    uplink.isOverused = false
    uplink.send(DataRate(kbps: 900), for: .seconds(30), wanted: 4_000)
    #expect((2_000...4_000).contains(uplink.estimator.rate?.kbps ?? 0))
    uplink.send(DataRate(kbps: 900), for: .seconds(60), wanted: 4_000)
    #expect((4_000...4_800).contains(uplink.estimator.rate?.kbps ?? 0))
  }

  @Test func aRateIsForgottenWithoutReports() {
    var uplink = Uplink(kbps: 1_000)
    uplink.send(uplink.rate * 1.2, for: .seconds(1))
    #expect(uplink.estimator.rate != nil)
    uplink.now = uplink.now + .seconds(31)
    uplink.send(uplink.rate * 0.5, for: .seconds(1))
    #expect(uplink.estimator.rate == nil)
  }
}
