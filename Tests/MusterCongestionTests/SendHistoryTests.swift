import MusterBase
import MusterCongestion
import MusterWire
import Testing

/// A history of packets that were sent 10 ms apart from 100 s on, and reports on them.
private struct World {
  var history = SendHistory()
  static let start = Instant.zero + .seconds(100)
  static let direct = Route.direct(Address(host: .v4(0xC000_0201), port: 9))

  mutating func send(
    _ numbers: Range<UInt64>, as serviceClass: ServiceClass = .video, over route: Route = direct,
    probe: ProbeCluster.ID? = nil
  ) {
    for number in numbers {
      history.sent(
        number, bytes: 1_000 + Int(number), as: serviceClass, over: route, probe: probe,
        at: Self.sentAt(number))
    }
  }

  /// Reports at 1,000 s on the receiver's clock, and 1 s after the first packet on the sender's.
  mutating func report(
    base: UInt64 = 0, _ ages: [Int?], after time: Duration = .seconds(1)
  ) -> [PathReport] {
    let arrivals = ages.map { age -> CongestionFeedback.Arrival in
      age.map { .init(age: UInt32($0 * 4)) } ?? .missing
    }
    let feedback = CongestionFeedback(
      session: 1, base: base, time: 4_000_000 + UInt32(truncatingIfNeeded: receiverTicks),
      arrivals: arrivals)
    return history.reported(feedback, at: Self.start + time)
  }

  var receiverTicks = 0

  static func sentAt(_ number: UInt64) -> Instant { start + .milliseconds(10 * Int(number)) }
}

struct SendHistoryTests {
  @Test func aReportTellsWhatArrivedAndWhen() throws {
    var world = World()
    world.send(0..<3, probe: 7)
    let report = try #require(world.report([30, 20, 10]).first)
    #expect(report.route == World.direct && report.results.map(\.bytes) == [1_000, 1_001, 1_002])
    #expect(report.results.map(\.sentAt) == (0..<3).map { World.sentAt($0) })
    #expect(report.results.allSatisfy { $0.probe == 7 })
    let arrived = Instant.zero + .seconds(1_000)
    #expect(
      report.results.map(\.fate)
        == [30, 20, 10].map { .arrived(at: arrived + .milliseconds(-$0)) })
    // Sent 980 ms ago, held back for 10: the shortest of the three.
    #expect(report.roundTrip == .milliseconds(970))
  }

  @Test func everyPacketIsNewOnce() {
    var world = World()
    world.send(0..<4)
    #expect(world.report([30, 20]).first?.results.count == 2)
    #expect(world.report([30, 20]).isEmpty)
    #expect(world.report([30, 20, 10]).first?.results.map(\.bytes) == [1_002])
    #expect(world.report(base: 3, [5]).first?.results.map(\.bytes) == [1_003])
  }

  /// Three later packets must have arrived, as in QUIC.
  @Test func whatIsOvertakenByThreeIsLost() {
    var world = World()
    world.send(0..<10)
    #expect(world.report([90, nil, 70, 60]).first?.results.count == 3)
    let lost = world.report([90, nil, 70, 60, 50]).flatMap(\.results).filter { $0.fate == .lost }
    #expect(lost.map(\.bytes) == [1_001])
    let late = world.report([90, 10, 70, 60, 50]).flatMap(\.results)
    #expect(late.map(\.fate) == [.arrivedLate] && late.map(\.bytes) == [1_001])
    #expect(world.report([90, 10, 70, 60, 50]).isEmpty)
  }

  /// Where audio has a queue of its own, it overtakes video by as much as that waits.
  @Test func whatAnotherClassOvertakesIsNotLost() {
    var world = World()
    world.send(0..<4)
    world.send(4..<30, as: .audio)
    world.send(30..<70, as: .audio)
    let overtaken = [90, nil, nil, 60] + (4..<30).map { 300 - 10 * $0 }
    let first = world.report(overtaken).flatMap(\.results)
    #expect(first.count == 28 && !first.contains { $0.fate == .lost })
    #expect(first.map(\.serviceClass) == [.video, .video] + Array(repeating: .audio, count: 26))
    // Packet 2 arrives at last; nothing is known of packet 1, of which no report speaks again.
    let second = world.report(base: 2, [5]).flatMap(\.results)
    #expect(second.map(\.bytes) == [1_002] && second.map(\.fate) != [.arrivedLate])
    // Packet 50 was sent 490 ms after packet 1, packet 51 half a second.
    #expect(world.report(base: 30, (30..<51).map { 600 - 10 * $0 }).first?.results.count == 21)
    let third = world.report(base: 51, [10]).flatMap(\.results)
    #expect(third.map(\.bytes) == [1_001, 1_051] && third.first?.fate == .lost)
  }

  /// Video that is missing is lost as soon as later video arrives, whatever a report covers.
  @Test func overtakenVideoIsLostWithTheNextOfItsClass() {
    var world = World()
    world.send(0..<3)
    world.send(3..<9, as: .audio)
    world.send(9..<10)
    let audio = (3..<9).map { 90 - 10 * $0 as Int? }
    #expect(world.report([90, nil, nil] + audio).first?.results.count == 7)
    let next = world.report(base: 9, [1]).flatMap(\.results)
    #expect(next.map(\.fate).prefix(2) == [.lost, .lost] && next.count == 3)
  }

  @Test func whatAReportDoesNotCoverIsNotLost() {
    var world = World()
    world.send(0..<20)
    #expect(world.report(base: 10, [50, 40, 30, 20]).flatMap(\.results).count == 4)
  }

  @Test func aReportIsSplitByRoute() {
    var world = World()
    let other = Route.direct(Address(host: .v4(0xC000_0202), port: 9))
    world.send(0..<2)
    world.send(2..<3, over: other)
    world.send(3..<4)
    let reports = world.report([40, 30, 20, 10])
    #expect(reports.map(\.route) == [World.direct, other])
    #expect(reports.map { $0.results.map(\.bytes) } == [[1_000, 1_001, 1_003], [1_002]])
    #expect(reports.map(\.roundTrip) == [.milliseconds(960), .milliseconds(960)])
  }

  /// A node that is offered one route after the other keeps the latest, with their packets.
  @Test func oldRoutesAreForgotten() {
    var world = World()
    for number in 0..<12 as Range<UInt64> {
      let route = Route.direct(Address(host: .v4(UInt32(number)), port: 9))
      world.send(number..<(number + 1), over: route)
    }
    let reports = world.report((0..<12).map { 120 - 10 * $0 })
    #expect(reports.map { $0.route.address?.host } == (4..<12).map { .v4(UInt32($0)) })
  }

  @Test func anArrivalAtAnUnknownTimeIsNoLoss() {
    var world = World()
    world.send(0..<1)
    let unknown = CongestionFeedback.Arrival(age: 99_999)
    let feedback = CongestionFeedback(session: 1, base: 0, time: 0, arrivals: [unknown])
    let report = world.history.reported(feedback, at: World.start + .seconds(9)).first
    #expect(report?.results.map(\.fate) == [.arrived(at: nil)] && report?.roundTrip == nil)
  }

  /// The time of a report is 32 bits long, and reports may overtake one another.
  @Test func theReceiversClockWraps() {
    var world = World()
    world.send(0..<3)
    var arrivals: [Instant] = []
    for (number, time) in [UInt32.max - 3, 4, 0].enumerated() {
      let feedback = CongestionFeedback(
        session: 1, base: UInt64(number), time: time, arrivals: [.init(age: 0)])
      let report = world.history.reported(feedback, at: World.start + .seconds(1))
      guard case .arrived(let at?) = report.first?.results.first?.fate else { continue }
      arrivals.append(at)
    }
    #expect(arrivals.count == 3)
    #expect(arrivals.map { ($0 - arrivals[0]).inMilliseconds } == [0, 2, 1])
  }

  /// Whatever a peer reports: nothing traps, no packet is new twice, and the estimate stays within
  /// its limits.
  @Test(arguments: 1...50 as ClosedRange<UInt64>)
  func anyReportIsSafe(seed: UInt64) {
    var random = PRNG(seed: seed)
    var history = SendHistory()
    var controller = PathController()
    controller.demand = DataRate(kbps: 3_000)
    var number: UInt64 = random.below(2) == 0 ? 0 : .max - 20_000
    var now = Instant.zero + .seconds(50)
    var news = 0
    for _ in 0..<300 {
      for _ in 0..<random.below(12) {
        let route = Route.direct(Address(host: .v4(UInt32(random.below(12))), port: 9))
        let serviceClass = ServiceClass.allCases[random.below(3)]
        history.sent(
          number, bytes: random.below(1_500), as: serviceClass, over: route, at: now)
        controller.sent(bytes: random.below(1_500), asks: true, at: now)
        number += UInt64(1 + random.below(3))
      }
      now = now + .milliseconds(random.below(400))
      let count = 1 + random.below(CongestionFeedback.limit)
      let base = random.below(4) == 0 ? random.next() >> 1 : number &- UInt64(random.below(600))
      let arrivals = (0..<count).map { _ in
        random.below(3) == 0
          ? .missing : CongestionFeedback.Arrival(age: UInt32(random.below(10_000)))
      }
      let encoded = CongestionFeedback(
        session: 1, base: base, time: UInt32(truncatingIfNeeded: random.next()),
        arrivals: arrivals
      ).encoded()
      guard let feedback = try? CongestionFeedback(decoding: encoded) else { continue }
      for report in history.reported(feedback, at: now) {
        news += report.results.count { $0.fate != .arrivedLate }
        _ = controller.reported(report, at: now)
      }
      #expect(PathController.limits.contains(controller.estimate), "seed \(seed)")
    }
    #expect(news > 0 && news <= 300 * 12)
  }
}
