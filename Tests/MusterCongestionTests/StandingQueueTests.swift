import MusterBase
import MusterCongestion
import Testing

private func kbps(_ rate: Double) -> DataRate { DataRate(kbps: rate) }

/// Packets of 1000 bytes, whose queueing delays follow from what is sent and what the path carries.
private struct Link {
  var now = Instant.zero + .seconds(10)
  /// The queueing delay of the next packet.
  var queue = Duration.zero
  let limit = Duration.milliseconds(300)
  /// The receiver's clock is ahead by this much.
  static let base = Duration.seconds(500)

  /// What a report says of the packets that are sent for `time` at one rate, with the queue as it
  /// follows from another, or as it is.
  mutating func report(
    _ time: Duration, sending: Double, carries rate: Double?
  ) -> [PacketResult] {
    let interval = Duration.seconds(8 / sending)
    let service = rate.map { Duration.seconds(8 / $0) }
    var results: [PacketResult] = []
    let end = now + time
    while now < end {
      let isLost = queue > limit
      results.append(
        PacketResult(
          bytes: 1000, sentAt: now,
          fate: isLost ? .lost : .arrived(at: now + Self.base + queue)))
      now = now + interval
      if let service { queue = max(queue + (isLost ? .zero : service) - interval, .zero) }
    }
    return results
  }
}

struct BusyPathTests {
  @Test func aPathWithoutAQueueHasNoRates() {
    var (link, path) = (Link(), BusyPath())
    path.add(link.report(.seconds(1), sending: 500, carries: 1000), base: Link.base)
    #expect(path.busySince == nil && path.rates == nil)
  }

  /// Long before the queue is full, and while it drops what is beyond it.
  @Test func aBusyPathShowsWhatItCarries() throws {
    var (link, path) = (Link(), BusyPath())
    for _ in 0..<10 {
      path.add(link.report(.milliseconds(100), sending: 1000, carries: 400), base: Link.base)
      guard link.queue > .milliseconds(120) else { continue }
      let rates = try #require(path.rates)
      #expect((380...420).contains(rates.arriving.kbps), "\(rates)")
      #expect((950...1050).contains(rates.sending.kbps), "\(rates)")
    }
    #expect(link.queue >= .milliseconds(280))
  }

  @Test func whatWasSentBeforeARestartDoesNotCount() throws {
    var (link, path) = (Link(), BusyPath())
    path.add(link.report(.milliseconds(200), sending: 1000, carries: 400), base: Link.base)
    let late = link.report(.milliseconds(100), sending: 1000, carries: 400)
    path.restart(at: link.now)
    path.add(late, base: Link.base)
    #expect(path.busySince != nil && path.rates == nil)
    path.add(link.report(.milliseconds(300), sending: 300, carries: 400), base: Link.base)
    #expect((290...310).contains(try #require(path.rates).sending.kbps))
  }

  @Test func aPathOnWhichAllIsLostHasNoRates() {
    var (link, path) = (Link(), BusyPath())
    link.queue = .milliseconds(250)
    for _ in 0..<100 {
      path.add(link.report(.milliseconds(100), sending: 5000, carries: 1), base: Link.base)
    }
    #expect(path.busySince != nil && path.rates == nil)
  }
}

struct StandingQueueTests {
  private func update(
    _ queue: inout StandingQueue, _ link: inout Link, sending: Double, carries: Double?,
    estimate: Double, mayBeShared: Bool = false
  ) -> StandingQueue.Action? {
    let results = link.report(.milliseconds(100), sending: sending, carries: carries)
    return queue.update(
      results, base: Link.base, queue: link.queue, rate: kbps(sending), estimate: kbps(estimate),
      mayBeShared: mayBeShared, at: link.now)
  }

  /// After a deep fall little is sent; after a small one the less, the longer the queue is.
  @Test(
    arguments: [(2000, 1000, 0.3...0.3), (600, 500, 0.3...0.85)]
      as [(Double, Double, ClosedRange<Double>)])
  func anOwnQueueDrains(before: Double, carries: Double, share: ClosedRange<Double>) throws {
    var (link, queue) = (Link(), StandingQueue())
    var found: DataRate?
    var reports = 0
    while found == nil, reports < 20 {
      reports += 1
      let action = update(
        &queue, &link, sending: before, carries: carries, estimate: before)
      if case .carries(let rate) = action { found = rate }
    }
    let rate = try #require(found)
    #expect((0.95...1.05).contains(rate.kbps / carries))
    while let drainRate = queue.drainRate, reports < 60 {
      reports += 1
      #expect(share.contains((drainRate.kbps / rate.kbps * 1000).rounded() / 1000))
      let action = update(
        &queue, &link, sending: drainRate.kbps, carries: carries, estimate: rate.kbps)
      #expect(action == nil)
    }
    #expect(!queue.isDraining && link.queue < .milliseconds(50))
  }

  /// Other traffic keeps the queue filled, and gets what this sender gives up.
  @Test func aQueueOfOthersDoesNot() throws {
    var (link, queue) = (Link(), StandingQueue())
    for _ in 0..<20 where !queue.isDraining {
      _ = update(&queue, &link, sending: 1000, carries: 800, estimate: 1000)
    }
    try #require(queue.isDraining)
    let begun = link.now
    var restored: DataRate?
    while restored == nil, link.now - begun < .seconds(5) {
      let rate = try #require(queue.drainRate)
      let action = update(&queue, &link, sending: rate.kbps, carries: nil, estimate: 800)
      // What arrives falls with what is sent, which is no further fall of the path.
      if case .restore(let rate) = action { restored = rate } else { #expect(action == nil) }
    }
    #expect(restored == kbps(600) && link.now - begun < .milliseconds(1_500))
    // From then on the trend of the queue decides, until nobody else has filled it for 10 s.
    #expect(update(&queue, &link, sending: 600, carries: 300, estimate: 600) == nil)
    for _ in 0..<4 {
      link.queue = .zero
      for rate in [900, 900, 300, 300, 300, 300, 300, 300, 300, 300] as [Double] {
        #expect(update(&queue, &link, sending: 600, carries: rate, estimate: 600) == nil)
      }
    }
    link.queue = .zero
    for _ in 0..<60 { _ = update(&queue, &link, sending: 600, carries: 900, estimate: 600) }
    for _ in 0..<10 where !queue.isDraining {
      _ = update(&queue, &link, sending: 600, carries: 300, estimate: 600)
    }
    #expect(queue.isDraining)
  }

  /// All paths of an uplink would drain it.
  @Test func aQueueThatMayBeSharedIsNotDrained() {
    var (link, queue) = (Link(), StandingQueue())
    for _ in 0..<20 {
      let action = update(
        &queue, &link, sending: 2000, carries: 1000, estimate: 2000, mayBeShared: true)
      #expect(action == nil && !queue.isDraining)
    }
    #expect(queue.since != nil)
    // Others are known not to wait in it.
    let action = update(&queue, &link, sending: 2000, carries: 1000, estimate: 2000)
    #expect(action == .carries(kbps(1000)))
  }

  @Test func aDrainEndsWithoutReports() {
    var (link, queue) = (Link(), StandingQueue())
    for _ in 0..<20 where !queue.isDraining {
      _ = update(&queue, &link, sending: 2000, carries: 1000, estimate: 2000)
    }
    queue.expire(at: link.now + .milliseconds(900))
    #expect(queue.isDraining)
    queue.expire(at: link.now + .milliseconds(1_100))
    #expect(!queue.isDraining && queue.since == nil)
  }

  /// A path that falls once more while its queue drains.
  @Test func aSecondFallIsFollowed() throws {
    var (link, queue) = (Link(), StandingQueue())
    for _ in 0..<20 where !queue.isDraining {
      _ = update(&queue, &link, sending: 2000, carries: 1000, estimate: 2000)
    }
    var found: DataRate?
    var reports = 0
    while found == nil, reports < 20 {
      reports += 1
      let rate = try #require(queue.drainRate)
      let action = update(&queue, &link, sending: rate.kbps, carries: 200, estimate: 1000)
      if case .carries(let rate) = action { found = rate }
    }
    #expect((180...220).contains(try #require(found).kbps))
  }

  /// A path that falls to a fifth: the queue is long for less than a second. (More than three, if
  /// only its trend counts.)
  @Test(arguments: 1...5 as ClosedRange<UInt64>)
  func aPathThatFallsIsSoonFree(seed: UInt64) {
    var script = PathScript(
      PathScript.Network(rate: kbps(2_000), delay: .milliseconds(20)),
      .video(most: kbps(3_000)), seed: seed)
    script.run(for: .seconds(20))
    script.network.rate = kbps(400)
    script.run(for: .seconds(10))
    let fall = script.samples(from: .seconds(20))
    let long = fall.count { $0.queue > 100 }
    #expect(long <= 9, "seed \(seed): \(long)00 ms")
    #expect((200...440).contains(script.meanEstimate(over: .seconds(5))), "seed \(seed)")
  }
}
