import MusterBase
import MusterCongestion
import MusterCore
import MusterCrypto
import MusterSimulator
import Testing

/// Three nodes in a call whose video, 400 kbit/s in each direction, has to wait: an estimate begins
/// at 300 kbit/s.
private struct Paced {
  static let key = ChannelKey.fromName("\(Marker.text) paced")
  var world: CoreWorld

  init() {
    world = CoreWorld(3, seed: 5)
    world.weight = { _ in 10_000 }
    world.join("paced", Self.key)
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
}
