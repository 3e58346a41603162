import MusterBase
import MusterCongestion
import MusterCore
import MusterCrypto
import MusterMedia
import MusterSimulator
import MusterWire
import Testing

/// Three nodes in a call whose video, 400 kbit/s in each direction, has to wait: an estimate begins
/// at 300 kbit/s.
private struct Paced {
  static let key = ChannelKey.fromName("\(Marker.text) paced")
  var world: CoreWorld

  /// With `startsLate`, nothing has happened yet.
  init(startsLate: Bool = false) {
    world = CoreWorld(3, seed: 5) { _, configuration in
      if startsLate { configuration.videoBitrate = 100 }
    }
    world.weight = { _ in 10_000 }
    world.join("paced", Self.key)
    guard !startsLate else { return }
    world.run(for: .seconds(3))
    // The first frames do not wait, so that they are not late.
    for host in world.hosts { host.sent = [] }
    world.run(for: .seconds(8))
  }

  /// The sizes of the datagrams that a host has sent to another since the last `clear`, in bursts:
  /// those of the same moment.
  func bursts(from index: Int, to other: Int) -> [Int] {
    var bursts: [(at: Instant, bytes: Int)] = []
    for flight in world.hosts[index].sent where flight.to == world.hosts[other].address {
      let bytes = flight.datagram.count + 28
      if bursts.last?.at == flight.arrivesAt {
        bursts[bursts.count - 1].bytes += bytes
      } else {
        bursts.append((flight.arrivesAt, bytes))
      }
    }
    return bursts.map(\.bytes)
  }

  func frames(from other: Int, at index: Int) -> Int {
    let link = world.hosts[index].shown.keys.first { $0.peer == world.id(other) }
    return link.flatMap { world.hosts[index].shown[$0] } ?? 0
  }
}

struct PacingTests {
  /// Without pacing, the ten packets of a frame leave together.
  @Test func aFrameLeavesInSmallBursts() throws {
    let paced = Paced()
    for other in 1...2 {
      let bursts = paced.bursts(from: 0, to: other).sorted()
      #expect(bursts.count > 200)
      #expect(try #require(bursts.last) < 6_000, "\(bursts.suffix(5))")
    }
    #expect(paced.frames(from: 0, at: 1) > 15 && paced.frames(from: 1, at: 0) > 15)
  }

  @Test func audioDoesNotWait() throws {
    let paced = Paced()
    for index in 0..<3 {
      for other in 0..<3 where other != index {
        let silence = try #require(paced.world.longestSilence(from: other, to: index))
        #expect(silence <= .milliseconds(20))
      }
    }
  }

  /// A path that was not used for ten seconds may have changed; after a short pause it is used on.
  @Test(arguments: [(8, false), (11, true)])
  func theEstimateOfAnUnusedPathIsForgotten(seconds: Int, isForgotten: Bool) throws {
    var paced = Paced()
    let channel = Paced.key.channelID
    let before = try #require(paced.world.estimate(from: 1, to: 2, in: channel))
    #expect(before > DataRate(kbps: 1_000))
    paced.world.call(1) { $0.leaveCall(in: channel, at: $1) }
    paced.world.run(for: .seconds(seconds))
    paced.world.call(1) { (try? $0.startCall(in: channel, at: $1)) ?? [] }
    paced.world.run(for: .milliseconds(30))
    let now = paced.world.estimate(from: 1, to: 2, in: channel)
    #expect((now == before) != isForgotten, "\(before), then \(String(describing: now))")
  }

  /// What a new path carries is not known; layers are not lowered before the probes are answered.
  @Test func theLayersStayOverAChangeOfPath() throws {
    var paced = Paced()
    paced.world.weight = { _ in 0 }
    paced.world.offer(3, of: .camera, by: 0)
    paced.world.run(for: .seconds(20))
    paced.world.hosts[0].clear()
    paced.world.passes = { from, to, _ in Set([from, to]) != Set([0, 2]) }
    paced.world.run(for: .seconds(6))
    #expect(paced.world.relay(from: 0, to: 2, in: Paced.key.channelID) == paced.world.id(1))
    let changes = paced.world.hosts[0].events.filter {
      if case .layer(_, _, .sent, _) = $0 { true } else { false }
    }
    #expect(changes.isEmpty, "\(changes)")
  }

  /// The path through the relay has a queue of its own.
  @Test func videoGoesOnAfterAChangeOfPath() throws {
    var paced = Paced()
    paced.world.passes = { from, to, _ in Set([from, to]) != Set([0, 2]) }
    paced.world.run(for: .seconds(6))
    #expect(paced.world.relay(from: 0, to: 2, in: Paced.key.channelID) == paced.world.id(1))
    let before = paced.frames(from: 0, at: 2)
    paced.world.run(for: .seconds(4))
    #expect(paced.frames(from: 0, at: 2) - before > 15)
  }

  /// As when the address of a mobile network changes. Nothing is lost here, so that nothing would
  /// be retransmitted unless the queue was.
  @Test func theQueueMovesToTheNextDirectPath() {
    var paced = Paced()
    paced.world.weight = { $0 == 0 ? 40_000 : 0 }
    paced.world.run(for: .seconds(5))
    let channel = Paced.key.channelID
    let before = paced.world.hosts[0].node.diagnostics(at: paced.world.now).videoPacketsRepeated
    for _ in 0..<10 {
      let frames = paced.frames(from: 0, at: 1)
      paced.world.move(1)
      // Each time at another point of the interval of frames.
      paced.world.run(for: .milliseconds(1_030))
      #expect(paced.world.address(from: 0, to: 1, in: channel) == paced.world.hosts[1].address)
      #expect(paced.frames(from: 0, at: 1) - frames >= 3)
    }
    let after = paced.world.hosts[0].node.diagnostics(at: paced.world.now).videoPacketsRepeated
    #expect(after == before)
  }

  @Test func theChannelsOfAPathShareIt() throws {
    var world = CoreWorld(2, seed: 5)
    world.uplink = { _ in DataRate(kbps: 1_000) }
    world.offer(3, of: .camera, by: 0)
    let keys = (0..<2).map { ChannelKey.fromName("\(Marker.text) shared \($0)") }
    for (index, key) in keys.enumerated() { world.join("shared \(index)", key) }
    world.run(for: .seconds(30))
    let estimate = try #require(world.estimate(from: 0, to: 1, in: keys[0].channelID)).kbps
    #expect((800...1_100).contains(estimate))
    // Audio takes about 140 kbit/s of it, and headers a twelfth of what video has.
    let target = try #require(world.hosts[0].targets[.camera]?.last)
    let share = Double(target.kilobitsPerSecond) / (estimate - 140)
    #expect(target.layer == 2 && (0.42...0.5).contains(share), "\(share)")
    for key in keys {
      let link = LinkID(channel: key.channelID, peer: world.id(0))
      #expect(world.hosts[1].shown[link] ?? 0 > 140)
    }
  }

  @Test func theEncoderFollowsAnEstimateThatFallsWithoutReports() throws {
    var world = CoreWorld(2, seed: 5)
    world.uplink = { _ in DataRate(kbps: 1_000) }
    world.offer(3, of: .camera, by: 0)
    let key = ChannelKey.fromName("\(Marker.text) silent")
    world.join("silent", key)
    world.run(for: .seconds(20))
    #expect(world.hosts[0].targets[.camera] == [EncoderTarget(layer: 2, kilobitsPerSecond: 700)])
    world.leastSize = { $0 == 1 ? 150 : 0 }
    world.run(for: .seconds(7))
    let estimate = try #require(world.estimate(from: 0, to: 1, in: key.channelID)).kbps
    let target = try #require(world.hosts[0].targets[.camera]?.last)
    #expect(estimate < 600 && Double(target.kilobitsPerSecond) < estimate, "\(target)")
  }

  @Test func theLargestLayerKeepsToTheBitrateOfTheConfiguration() {
    var world = CoreWorld(3, seed: 5) { index, configuration in
      if index == 0 { configuration.videoBitrate = 400 }
    }
    for index in 0..<3 { world.offer(3, of: .camera, by: index) }
    let key = ChannelKey.fromName("\(Marker.text) capped")
    world.join("capped", key)
    world.run(for: .seconds(5))
    #expect(world.hosts[0].targets[.camera] == [EncoderTarget(layer: 2, kilobitsPerSecond: 400)])
    #expect(world.hosts[1].targets[.camera] == [EncoderTarget(layer: 2, kilobitsPerSecond: 700)])
    // The others keep theirs.
    let small = VideoRequest(width: 320, height: 180)
    world.command(2) { $0.watch(small, of: nil, in: key.channelID, at: $1) }
    world.run(for: .seconds(5))
    #expect(world.hosts[0].targets[.camera]?.map(\.layer) == [1, 2])
    for index in 0...1 {
      #expect(world.hosts[index].targets[.camera]?.first?.kilobitsPerSecond == 200)
    }
  }

  /// As if the peer's reports were all lost; they are among its smaller packets.
  @Test func videoEndsWithoutReportsAndBeginsAnewWithThem() {
    var paced = Paced()
    paced.world.run(for: .seconds(10))
    paced.world.leastSize = { $0 == 1 ? 150 : 0 }
    paced.world.run(for: .seconds(8))
    let early = paced.frames(from: 0, at: 1)
    paced.world.run(for: .seconds(4))
    let end = paced.frames(from: 0, at: 1)
    #expect(end > early)
    let others = paced.frames(from: 0, at: 2)
    paced.world.run(for: .seconds(8))
    #expect(paced.frames(from: 0, at: 1) == end)
    #expect(paced.frames(from: 0, at: 2) - others > 35)
    let changes = paced.world.hosts[0].events.compactMap { event -> LayerChange? in
      guard case .layer(let peer, _, .sent, let change) = event, peer == paced.world.id(1)
      else { return nil }
      return change
    }
    #expect(changes.last?.to == nil && changes.last?.why == .bandwidth)

    paced.world.leastSize = { _ in 0 }
    paced.world.run(for: .seconds(15))
    #expect(paced.frames(from: 0, at: 1) == end)
    paced.world.run(for: .seconds(15))
    #expect(paced.frames(from: 0, at: 1) - end > 15)
  }

  /// A camera without a microphone: when video has ended, no packet of it asks for reports.
  @Test func videoComesBackWithoutAudio() {
    var paced = Paced()
    paced.world.speaks = { $0 == 1 }
    paced.world.run(for: .seconds(10))
    paced.world.leastSize = { $0 == 1 ? 150 : 0 }
    paced.world.run(for: .seconds(20))
    let end = paced.frames(from: 0, at: 1)
    paced.world.leastSize = { _ in 0 }
    paced.world.run(for: .seconds(15))
    #expect(paced.frames(from: 0, at: 1) == end)
    paced.world.run(for: .seconds(25))
    #expect(paced.frames(from: 0, at: 1) - end > 25)
  }

  /// A camera without a microphone, of less than the estimate: the first report is lost, and
  /// nothing is sent that would ask for another one.
  @Test func videoBeginsWithoutTheFirstReport() {
    var paced = Paced(startsLate: true)
    paced.world.weight = { _ in 5_000 }
    paced.world.speaks = { $0 == 1 }
    while paced.frames(from: 0, at: 1) == 0 { paced.world.run(for: .milliseconds(10)) }
    paced.world.leastSize = { $0 == 1 ? 150 : 0 }
    paced.world.run(for: .seconds(2))
    let start = paced.frames(from: 0, at: 1)
    #expect(start < 4)
    paced.world.leastSize = { _ in 0 }
    paced.world.run(for: .seconds(8))
    #expect(paced.frames(from: 0, at: 1) - start > 15)
  }
}
