import MusterBase
import MusterCongestion
import MusterCore
import MusterCrypto
import MusterMedia
import MusterSimulator
import MusterWire
import Testing

/// A node that sends video of 5 frames a second and audio to receivers over a narrow uplink.
private struct Narrow {
  static let key = ChannelKey.fromName("\(Marker.text) uplink")
  /// The frames and the packets of audio of a second.
  static let frames = SyntheticSource.framesPerSecond
  static let packets = 50

  var world: CoreWorld
  let receivers: Range<Int>
  let rate: DataRate

  init(_ receivers: Int, kbps: Double, limit: Int?, seed: UInt64 = 5) {
    world = CoreWorld(receivers + 1, seed: seed) { index, configuration in
      if index == 0 { configuration.uplink = limit }
    }
    self.receivers = 1..<receivers + 1
    let rate = DataRate(kbps: kbps)
    self.rate = rate
    world.uplink = { $0 == 0 ? rate : nil }
    world.fillsBitrate = { $0 == 0 }
    world.speaks = { $0 == 0 }
    for index in 0...receivers { world.offer(index == 0 ? 3 : 0, of: .camera, by: index) }
  }

  mutating func join(_ count: Int? = nil) {
    for index in 0...(count ?? receivers.count) {
      world.joinAlone(index, "uplink", Self.key)
    }
  }

  mutating func request(_ request: VideoRequest, by indices: some Sequence<Int>) {
    for index in indices {
      world.command(index) {
        $0.watch(request, of: nil, in: Self.key.channelID, at: $1)
      }
    }
  }

  struct Outcome {
    /// The share of the uplink that was used.
    var used: Double
    /// The frames and the packets of audio of each receiver, as shares of those that there were.
    var frames: [Double]
    var heard: [Double]
    /// The height of the layer that each receiver gets at the end, and why; nil without video.
    var heights: [Int?]
    var reasons: [LayerReason]
    /// The number of changes of what each receiver gets.
    var changes: [Int]
  }

  mutating func measure(seconds: Int) -> Outcome {
    let before = (shown, heard, changes, world.hosts[0].sent.count)
    world.run(for: .seconds(Double(seconds)))
    let sent = world.hosts[0].sent[before.3...].reduce(0) { $0 + $1.datagram.count + 28 }
    let statistics = receivers.map { index in
      world.hosts[0].node.statistics(at: world.now).first { $0.link.peer == world.id(index) }?.sent
    }
    func shares(_ after: [Int], _ before: [Int], of perSecond: Int) -> [Double] {
      zip(after, before).map { Double($0 - $1) / Double(perSecond * seconds) }
    }
    return Outcome(
      used: DataRate(bytes: Double(sent), over: .seconds(Double(seconds))).kbps / rate.kbps,
      frames: shares(shown, before.0, of: Self.frames),
      heard: shares(heard, before.1, of: Self.packets),
      heights: statistics.map { $0?.layer?.size.height },
      reasons: statistics.map { $0?.why ?? .unknown },
      changes: zip(changes, before.2).map { $0 - $1 })
  }

  private var link: LinkID { LinkID(channel: Self.key.channelID, peer: world.id(0)) }
  private var shown: [Int] { receivers.map { world.hosts[$0].shown[link] ?? 0 } }
  private var heard: [Int] { receivers.map { world.hosts[$0].heard[world.id(0)]?.count ?? 0 } }
  private var changes: [Int] {
    receivers.map { index in
      world.hosts[0].events.count { event in
        guard case .layer(world.id(index), _, .sent, _) = event else { return false }
        return true
      }
    }
  }
}

struct UplinkTests {
  private static let small = VideoRequest(width: 320, height: 180)

  /// With the limit given, and with the one that is learnt.
  @Test(arguments: [nil, 480]) func twoReceiversShareAVeryNarrowUplink(limit: Int?) {
    var narrow = Narrow(2, kbps: 500, limit: limit)
    narrow.join()
    narrow.world.run(for: .seconds(10))
    let outcome = narrow.measure(seconds: 10)
    #expect(outcome.used > 0.85, "\(outcome)")
    #expect(outcome.frames.allSatisfy { $0 > 0.95 }, "\(outcome)")
    #expect(outcome.heard.allSatisfy { $0 > 0.99 }, "\(outcome)")
    #expect(outcome.changes == [0, 0] && outcome.heights == [360, 360], "\(outcome)")
  }

  @Test(arguments: [nil, 2_900]) func theOneThatPinsTheSenderGetsTheLargestLayer(limit: Int?) {
    var narrow = Narrow(8, kbps: 3_000, limit: limit)
    narrow.join()
    narrow.request(Self.small, by: 2...8)
    narrow.world.run(for: .seconds(15))
    let outcome = narrow.measure(seconds: 10)
    #expect(outcome.used > 0.83, "\(outcome)")
    #expect(outcome.frames.allSatisfy { $0 > 0.9 }, "\(outcome)")
    #expect(outcome.heard.allSatisfy { $0 > 0.99 }, "\(outcome)")
    #expect(outcome.heights == [360] + [Int?](repeating: 180, count: 7), "\(outcome)")
    #expect(outcome.changes.reduce(0, +) <= 1, "\(outcome)")
  }

  @Test(arguments: [nil, 1_450]) func withRoomForHardlyMoreThanAudioAllOfThatArrives(limit: Int?) {
    var narrow = Narrow(16, kbps: 1_500, limit: limit)
    narrow.join()
    narrow.world.run(for: .seconds(15))
    let outcome = narrow.measure(seconds: 10)
    #expect(outcome.heard.allSatisfy { $0 > (limit == nil ? 0.98 : 0.99) }, "\(outcome)")
    // Some get a still every four seconds until the limit is known well.
    let least = limit == nil ? 0.02 : 0.2
    #expect(outcome.frames.reduce(0, +) > least * 16, "\(outcome)")
    #expect(outcome.reasons.count { $0 == .uplinkShare } >= (limit == nil ? 8 : 16), "\(outcome)")
  }

  @Test(arguments: [nil, 1_950]) func aReceiverThatComesChangesTheLayerOfOneOtherAtMost(limit: Int?)
  {
    var narrow = Narrow(6, kbps: 2_000, limit: limit)
    narrow.join(5)
    narrow.world.run(for: .seconds(limit == nil ? 30 : 20))
    narrow.world.joinAlone(6, "uplink", Narrow.key)
    let outcome = narrow.measure(seconds: 15)
    #expect(outcome.changes.prefix(5).reduce(0, +) <= 1, "\(outcome)")
    #expect(outcome.heights.last != .some(nil), "\(outcome)")
  }

  @Test func thePlanHoldsForPathsThatChange() {
    var narrow = Narrow(4, kbps: 1_500, limit: 1_450)
    narrow.join()
    narrow.world.run(for: .seconds(10))
    for index in 1...4 { narrow.world.move(index) }
    narrow.world.run(for: .seconds(5))
    let outcome = narrow.measure(seconds: 10)
    #expect(outcome.used > 0.8 && outcome.used < 1, "\(outcome)")
    #expect(outcome.frames.allSatisfy { $0 > 0.95 }, "\(outcome)")
    #expect(outcome.heard.allSatisfy { $0 > 0.99 }, "\(outcome)")
  }

  @Test func aNarrowPathGetsLessAndTheOthersTheRest() {
    var narrow = Narrow(3, kbps: 1_250, limit: 1_200)
    narrow.world.downlink = { $0 == 1 ? DataRate(kbps: 180) : nil }
    narrow.join()
    narrow.world.run(for: .seconds(20))
    let outcome = narrow.measure(seconds: 20)
    // With a third for each, of which the first cannot use all, it would be 74 %.
    #expect(outcome.used > 0.8, "\(outcome)")
    #expect(outcome.reasons.first == .bandwidth, "\(outcome)")
    #expect(outcome.heard.allSatisfy { $0 > 0.97 }, "\(outcome)")
    #expect(outcome.heights.suffix(2) == [360, 360] && outcome.heights[0] != nil, "\(outcome)")
    #expect(outcome.frames.suffix(2).allSatisfy { $0 > 0.9 }, "\(outcome)")
    #expect(outcome.frames[0] > 0.3, "\(outcome)")
  }

  @Test func aMemberBesideTheUplinkIsNotLimited() {
    var narrow = Narrow(4, kbps: 1_500, limit: nil)
    narrow.world.takesUplink = { $1 > 1 }
    narrow.join()
    narrow.world.run(for: .seconds(20))
    let outcome = narrow.measure(seconds: 20)
    // The uplink, and as much beside it as the first one gets.
    #expect(outcome.used > 1.05, "\(outcome)")
    #expect(outcome.reasons.first == .started, "\(outcome)")
    #expect(outcome.frames.allSatisfy { $0 > 0.95 }, "\(outcome)")
    #expect(outcome.heard.allSatisfy { $0 > 0.99 }, "\(outcome)")
  }

  @Test func withoutAQueueNothingIsLimited() {
    var narrow = Narrow(4, kbps: 100_000, limit: nil)
    narrow.join()
    narrow.world.run(for: .seconds(15))
    let outcome = narrow.measure(seconds: 5)
    #expect(narrow.world.hosts[0].node.uplinkLimit == nil)
    #expect(outcome.heights == [360, 360, 360, 360], "\(outcome)")
  }

  /// Its own delays could be the queue.
  @Test func aNodeThatIsShortOfCPULearnsNothing() {
    let limits = [Duration.zero, .milliseconds(60)].map { lag in
      var narrow = Narrow(2, kbps: 500, limit: nil)
      narrow.world.lag = { $0 == 0 ? lag : .zero }
      narrow.join()
      narrow.world.run(for: .seconds(20))
      return narrow.world.hosts[0].node.uplinkLimit
    }
    #expect(limits[0] != nil && limits[1] == nil)
  }

  @Test func whatWasLearntOutlastsAShortageOfCPU() {
    var narrow = Narrow(2, kbps: 500, limit: nil)
    narrow.join()
    var limits: [Double?] = []
    for (lag, seconds) in [(0, 20), (60, 40), (0, 10)] {
      narrow.world.lag = { $0 == 0 ? .milliseconds(lag) : .zero }
      for _ in 0..<seconds * 10 {
        narrow.world.run(for: .milliseconds(100))
        limits.append(narrow.world.hosts[0].node.uplinkLimit)
      }
    }
    #expect(limits.dropFirst(200).allSatisfy { $0 != nil })
  }

  /// As if the limit was set too high, or the receivers were all behind the same narrow link.
  @Test(arguments: [1, 3]) func aLimitThatIsTooHighIsNoHarm(receivers: Int) {
    let outcomes = [nil, 3_000].map { limit in
      var narrow = Narrow(receivers, kbps: 700, limit: limit)
      narrow.join()
      narrow.world.run(for: .seconds(20))
      return narrow.measure(seconds: 20)
    }
    let heard = outcomes.map { $0.heard.reduce(0, +) / Double(receivers) }
    #expect(heard[1] > heard[0] - 0.03, "\(outcomes)")
  }
}
