import MusterBase
import MusterCongestion
import MusterWire
import Testing

/// A reporter on a virtual clock, and the reports that it has sent.
private struct World {
  var reporter = FeedbackReporter(session: 7)
  var now = Instant.zero + .seconds(100)
  var reports: [(at: Instant, feedback: CongestionFeedback)] = []
  private(set) var askedBytes = 0
  private(set) var reportBytes = 0

  static let overhead = 57

  /// Receives a packet; RTP is lengthened to make an IP packet of this many bytes.
  mutating func receive(_ number: UInt64, _ start: [UInt8] = Self.video(0), bytes: Int = 1_200) {
    let missing = PayloadKind(of: start) == .rtp ? bytes - Self.overhead - start.count : 0
    let payload = start + [UInt8](repeating: 0, count: missing)
    if FeedbackReporter.asks(payload) { askedBytes += payload.count + Self.overhead }
    reporter.received(number, payload, overhead: Self.overhead, arrivedAt: now, at: now)
  }

  /// Runs the clock, and sends what is due.
  mutating func run(until end: Instant) {
    while let due = reporter.deadline, due <= end {
      now = max(now, due)
      guard let payload = reporter.report(at: now) else {
        Issue.record("nothing is due at \(due)")
        return
      }
      reportBytes += payload.count + Self.overhead
      do { reports.append((now, try CongestionFeedback(decoding: payload))) } catch {
        Issue.record(error)
      }
    }
    now = end
  }

  mutating func run(for time: Duration) { run(until: now + time) }

  /// The intervals between reports in milliseconds.
  var intervals: [Double] {
    zip(reports.dropFirst(), reports).map { ($0.at - $1.at).inMilliseconds }
  }

  static func video(_ milliseconds: Int) -> [UInt8] {
    rtp(PayloadType.videoBase, timestamp: UInt32(truncatingIfNeeded: 90 * milliseconds), ssrc: 1)
  }

  static func audio(_ milliseconds: Int) -> [UInt8] {
    rtp(PayloadType.opus, timestamp: UInt32(truncatingIfNeeded: 48 * milliseconds), ssrc: 2)
  }

  private static func rtp(_ type: UInt8, timestamp: UInt32, ssrc: UInt32) -> [UInt8] {
    RTPPacket(
      header: RTPHeader(
        marker: false, payloadType: type, sequence: 0, timestamp: timestamp, ssrc: ssrc),
      payload: [1, 2, 3]
    ).encoded()
  }
}

extension CongestionFeedback {
  /// The ages in milliseconds; nil for packets that have not arrived.
  fileprivate var ages: [Double?] { arrivals.map { $0.age?.inMilliseconds } }
  fileprivate var received: [UInt64] {
    arrivals.indices.filter { arrivals[$0].isReceived }.map { base + UInt64($0) }
  }
  fileprivate var end: UInt64 { base + UInt64(arrivals.count) }
}

struct FeedbackReportTests {
  @Test func aReportHasTheArrivalsAndTheGaps() {
    var world = World()
    world.receive(40)
    world.run(for: .milliseconds(10))
    world.receive(41)
    world.run(for: .milliseconds(5))
    world.receive(43)
    world.run(for: .milliseconds(100))
    let (at, feedback) = world.reports[0]
    #expect(feedback.session == 7 && feedback.base == 40)
    // The gap brought it forward.
    #expect(at == .zero + .milliseconds(100_015) && feedback.ages == [15, 5, nil, 0])
    #expect(feedback.time == 400_060)
  }

  @Test func whatWasNewIsReportedTwiceAndOnce() {
    var world = World()
    for number in 0..<40 as Range<UInt64> {
      world.receive(number)
      world.run(for: .milliseconds(10))
    }
    world.run(for: .seconds(1))
    #expect(world.reports.count >= 4 && world.reports.last?.feedback.end == 40)
    for (next, report) in zip(world.reports.dropFirst(), world.reports) {
      #expect(next.feedback.base <= report.feedback.end)
      #expect(next.feedback.base >= report.feedback.base)
    }
    for number in 0..<40 as Range<UInt64> {
      let times = world.reports.filter { $0.feedback.base <= number && number < $0.feedback.end }
      #expect((1...2).contains(times.count), "packet \(number)")
      // Every report gives the same time of arrival.
      for (at, feedback) in times {
        let age = feedback.ages[Int(number - feedback.base)] ?? .nan
        #expect(at == .zero + .milliseconds(100_000 + 10 * Int(number) + Int(age)))
      }
    }
  }

  @Test func aLatePacketIsReportedAgain() throws {
    var world = World()
    for number in 0..<30 as Range<UInt64> where number != 5 {
      world.receive(number)
      world.run(for: .milliseconds(20))
    }
    let before = world.reports.flatMap(\.feedback.received)
    #expect(before.contains(4) && before.contains(6) && !before.contains(5))
    world.receive(5)
    world.run(for: .milliseconds(200))
    let last = try #require(world.reports.last).feedback
    #expect(last.base == 5 && last.end == 30 && last.arrivals[0].isReceived)
    #expect(last.arrivals.allSatisfy { $0.isReceived })
  }

  @Test func aReportCoversAtMostTheLatest512() throws {
    var world = World()
    world.receive(0)
    world.receive(10_000)
    world.run(for: .milliseconds(100))
    let feedback = try #require(world.reports.last).feedback
    #expect(feedback.base == 10_000 - 511 && feedback.arrivals.count == 512)
    #expect(feedback.arrivals.count { $0.isReceived } == 1)
    // Too old to be known.
    world.receive(9_000)
    world.run(for: .seconds(2))
    #expect(world.reports.allSatisfy { $0.feedback.end <= 10_001 })
  }

  @Test func otherPayloadsAreReportedButAskForNothing() throws {
    var world = World()
    let others: [[UInt8]] = [[], [0], [1, 2], [2, 2], [3, 0], [4, 0], [0x81, 201, 0, 0], [9]]
    for (number, payload) in others.enumerated() {
      #expect(!FeedbackReporter.asks(payload), "\(payload)")
      world.receive(UInt64(number), payload)
      #expect(world.reporter.deadline == nil)
    }
    #expect(FeedbackReporter.asks([0, 0]))
    world = World()
    world.receive(1)
    world.receive(2, [4, 0])
    world.receive(3, [0, 0, 0])
    world.run(for: .seconds(1))
    #expect(try #require(world.reports.first).feedback.ages == [50, 50, 50])
    #expect(world.reporter.deadline == nil)
  }

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func everyArrivalIsReportedWithItsTimeOnAnyNetwork(seed: UInt64) {
    var random = PRNG(seed: seed)
    var world = World()
    var arrivedAt: [UInt64: Instant] = [:]
    var reported: [UInt64: Bool] = [:]
    var flights: [(number: UInt64, at: Instant)] = []
    for number in 0..<600 as Range<UInt64> where random.below(10) != 0 || number == 0 {
      let delay = random.below(20) == 0 ? random.below(150) : random.below(8)
      flights.append((number, world.now + .milliseconds(7 * Int(number) + Int(delay))))
    }
    flights.sort { $0.at < $1.at }
    let first = flights[0].number
    for (number, at) in flights {
      world.run(until: at)
      world.receive(number)
      arrivedAt[number] = at
    }
    world.run(for: .seconds(2))
    for (at, feedback) in world.reports {
      for (offset, arrival) in feedback.arrivals.enumerated() {
        let number = feedback.base + UInt64(offset)
        guard let age = arrival.age else {
          #expect(arrivedAt[number].map { $0 >= at } ?? true, "seed \(seed): \(number)")
          reported[number] = reported[number] ?? false
          continue
        }
        let error = arrivedAt[number].map { (at - $0 - age).inMilliseconds } ?? .nan
        #expect(abs(error) <= 0.25, "seed \(seed): \(number)")
        reported[number] = true
      }
    }
    for number in arrivedAt.keys where number >= first {
      #expect(reported[number] == true, "seed \(seed): \(number)")
    }
    #expect(Double(world.reportBytes) <= 0.05 * Double(world.askedBytes) + 1_000)
  }
}

struct FeedbackScheduleTests {
  @Test func videoIsReportedTenTimesASecond() {
    var world = World()
    for number in 0..<150 as Range<UInt64> {
      world.receive(number, World.video(20 * Int(number)))
      world.run(for: .milliseconds(20))
    }
    #expect(world.reports.first.map { $0.at - (.zero + .seconds(100)) } == .milliseconds(50))
    #expect(world.intervals.allSatisfy { (50...100).contains($0) } && world.intervals.count > 25)
  }

  /// One payload, the time after which a report is due, and by how much it may go before.
  @Test(arguments: [
    (World.video(0), after: 100, early: 20), (World.audio(0), after: 250, early: 0),
  ])
  func onlyReportsOnVideoMayGoEarlyWithAnothers(_ payload: [UInt8], after: Int, early: Int) {
    var world = World()
    world.receive(0, payload)
    world.run(for: .milliseconds(50))
    #expect(world.reports.count == 1)
    world.receive(1, payload)
    world.run(for: .milliseconds(after - early - 1))
    #expect(world.reporter.report(at: world.now) == nil)
    #expect(world.reporter.report(at: world.now + .milliseconds(1)) != nil)
  }

  @Test func aReportThatAGapBroughtForwardKeepsItsDistance() {
    var world = World()
    world.receive(0)
    world.run(for: .milliseconds(50))
    world.receive(2)
    world.run(for: .milliseconds(24))
    #expect(world.reports.count == 1 && world.reporter.report(at: world.now) == nil)
    #expect(world.reporter.report(at: world.now + .milliseconds(1)) != nil)
  }

  @Test func audioAloneIsReportedFourTimesASecondAtMost() {
    var world = World()
    for number in 0..<500 as Range<UInt64> {
      world.receive(number, World.audio(20 * Int(number)), bytes: 230)
      world.run(for: .milliseconds(20))
    }
    #expect(world.intervals.allSatisfy { (250...300).contains($0) }, "\(world.intervals)")
  }

  /// 11 kbit/s: a twentieth of it is less than a report a second.
  @Test func slowAudioIsReportedOnceASecond() {
    var world = World()
    for number in 0..<200 as Range<UInt64> {
      world.receive(number, World.audio(60 * Int(number)), bytes: 80)
      world.run(for: .milliseconds(60))
    }
    #expect(world.intervals.suffix(5).allSatisfy { (1_000...1_060).contains($0) })
  }

  @Test func aGapIsReportedAtOnceButNotMoreOftenThanFortyTimesASecond() {
    var world = World()
    for number in 0..<400 as Range<UInt64> {
      world.receive(2 * number, World.video(5 * Int(number)))
      world.run(for: .milliseconds(5))
    }
    #expect(world.intervals.allSatisfy { $0 >= 25 } && world.intervals.contains { $0 == 25 })
  }

  @Test(arguments: [true, false])
  func aRiseInDelayIsReportedAtOnce(isVideo: Bool) {
    var world = World()
    let start = world.now
    // From 2 s on, each packet takes 16 ms longer than the one before.
    let turn = start + .seconds(2)
    for number in 0..<150 {
      let delay = max(0, number - 100) * 16
      world.run(until: start + .milliseconds(20 * number + delay))
      let payload = isVideo ? World.video(20 * number) : World.audio(20 * number)
      world.receive(UInt64(number), payload, bytes: isVideo ? 1_200 : 230)
    }
    let usual: Double = isVideo ? 80 : 250
    let times = world.reports.dropFirst().map(\.at)
    for (at, interval) in zip(times, world.intervals).dropFirst(2) where at < turn {
      #expect(interval >= usual)
    }
    let early = zip(times, world.intervals).filter { $0.0 > turn && $0.1 < usual }
    #expect(early.count > 5, "\(world.intervals)")
  }

  /// A late packet makes every other report a large one.
  @Test func largeReportsKeepTheShareToo() {
    var world = World()
    for number in 0..<4_000 as Range<UInt64> {
      if number % 40 != 5 { world.receive(number, World.audio(20 * Int(number)), bytes: 450) }
      if number > 400, number % 40 == 30 {
        world.receive(number - 385, World.audio(20 * Int(number) - 7_700), bytes: 450)
      }
      world.run(for: .milliseconds(20))
    }
    #expect(world.reports.contains { $0.feedback.arrivals.count > 350 })
    #expect(Double(world.reportBytes) <= 0.05 * Double(world.askedBytes) + 1_000)
  }

  /// Three of four packets are lost, at 1,100 kbit/s; reports with 512 arrivals follow a gap.
  @Test func aLargeReportIsNotFollowedByOthersAsLarge() {
    var world = World()
    for number in 0..<3_000 as Range<UInt64> {
      if number % 4 == 0 { world.receive(number + (number > 1_000 ? 1_000 : 0), bytes: 490) }
      world.run(for: .milliseconds(3))
    }
    #expect(world.reports.contains { $0.feedback.arrivals.count == 512 })
    #expect(world.intervals.suffix(10).allSatisfy { $0 < 700 }, "\(world.intervals.suffix(10))")
  }

  @Test func aPauseIsNoRiseInDelay() throws {
    var world = World()
    for number in 0..<100 {
      if number == 50 { world.run(for: .seconds(5)) }
      world.receive(UInt64(number), World.audio(20 * number), bytes: 230)
      world.run(for: .milliseconds(20))
    }
    // The first packet after it is collected with those that follow.
    let resumed = Instant.zero + .seconds(106)
    #expect(
      try #require(world.reports.first { $0.at >= resumed }).at == resumed + .milliseconds(50))
  }

  /// A clock that jumps, retransmissions and reordered packets are no rise in delay.
  @Test func packetsOutOfOrderAreNoRiseInDelay() {
    var world = World()
    for number in 0..<150 {
      let sampled = number % 10 == 9 ? 20 * number - 400 : 20 * number
      let jump = number > 75 ? 3_600_000 : 0
      world.receive(UInt64(number), World.video(sampled + jump))
      world.run(for: .milliseconds(20))
    }
    #expect(world.intervals.allSatisfy { $0 > 75 }, "\(world.intervals)")
  }
}
