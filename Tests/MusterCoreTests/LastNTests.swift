import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterMedia
import MusterSimulator
import MusterWire
import Testing

/// Nodes in a call with cameras; the first one requests everything, but receives few streams, and
/// the others request nothing by themselves.
private struct FewStreams {
  static let key = ChannelKey.fromName("\(Marker.text) few streams")
  let channel = key.channelID
  var world: CoreWorld

  /// The nodes enter the call one after the other, in the order of their indices unless stated
  /// otherwise.
  init(_ count: Int = 6, most: Int?, order: [Int]? = nil, seed: UInt64 = 3) {
    world = CoreWorld(count, seed: seed) { index, configuration in
      configuration.relays = false
      if index == 0 { configuration.maxStreams = most } else { configuration.requested = .none }
    }
    world.level = { _, _ in 70 }
    for index in order ?? Array(0..<count) {
      world.joinAlone(index, "few streams", Self.key)
      world.run(for: .seconds(2))
    }
    world.run(for: .seconds(3))
  }

  /// Lets one node speak, in words of 140 ms with pauses of 60 ms, or none.
  mutating func speak(_ index: Int?, for duration: Duration) {
    world.level = { other, now in
      other == index && now.nanoseconds / 20_000_000 % 10 < 7 ? 25 : 70
    }
    world.run(for: duration)
  }

  func link(_ index: Int) -> LinkID { LinkID(channel: channel, peer: world.id(index)) }

  mutating func pin(_ index: Int, _ isPinned: Bool = true) {
    let (channel, id) = (channel, world.id(index))
    world.command(0) {
      $0.watch(.best, stream: .camera, of: id, isPinned: isPinned, in: channel, at: $1)
    }
  }

  /// The nodes of which another one, the first unless stated otherwise, gets frames in a second.
  mutating func received(by receiver: Int = 0, after pause: Duration = .seconds(1)) -> [Int] {
    world.run(for: pause)
    let before = world.hosts[receiver].shown
    world.run(for: .seconds(1))
    return world.hosts.indices.filter {
      let link = link($0)
      return (world.hosts[receiver].shown[link] ?? 0) > (before[link] ?? 0) + 1
    }
  }

  /// The layer changes at a node of what it exchanges with another one.
  func changes(
    at index: Int, with other: Int, _ direction: LayerDirection
  ) -> [LayerChange] {
    let id = world.id(other)
    return world.hosts[index].events.compactMap {
      if case .layer(id, .camera, direction, let change) = $0 { change } else { nil }
    }
  }
}

struct LastNTests {
  @Test func newcomersComeLast() {
    var call = FewStreams(most: 2, order: [0, 2, 5, 1, 4, 3])
    #expect(call.received() == [2, 5])
    for newcomer in [1, 4, 3] {
      #expect(call.changes(at: 0, with: newcomer, .received).isEmpty)
      #expect(call.changes(at: newcomer, with: 0, .sent).isEmpty, "not even for a moment")
    }
    // The choice of one receiver is no other's.
    let channel = call.channel
    call.world.command(2) { $0.watch(.best, of: nil, in: channel, at: $1) }
    #expect(call.received(by: 2) == [0, 1, 3, 4, 5])
  }

  @Test func aSpeakerRisesWithinASecondAndRanksBeforeTheSilent() {
    var call = FewStreams(most: 2)
    call.world.hosts[0].clear()
    call.world.hosts[5].clear()
    call.speak(5, for: .seconds(1))
    #expect(call.changes(at: 0, with: 5, .received).first?.to != nil)
    #expect(call.changes(at: 5, with: 0, .sent).first?.to != nil)
    let ended = call.changes(at: 0, with: 2, .received)
    #expect(ended.map(\.to) == [nil] && ended.map(\.why) == [.rank])
    #expect(call.changes(at: 2, with: 0, .sent).last?.why == .rank)
    #expect(call.received() == [1, 5])
    call.speak(4, for: .seconds(1))
    #expect(call.received() == [4, 5])
    call.speak(3, for: .seconds(1))
    // Silence changes nothing.
    call.speak(nil, for: .seconds(20))
    #expect(call.received() == [3, 4])
  }

  @Test func otherStreamsAndUnlimitedNodesAreNotRanked() {
    var all = FewStreams(most: nil)
    all.speak(4, for: .seconds(2))
    #expect(all.received() == [1, 2, 3, 4, 5])
    var enough = FewStreams(most: 5)
    #expect(enough.received() == [1, 2, 3, 4, 5])
    var none = FewStreams(most: 0)
    none.speak(4, for: .seconds(2))
    none.pin(3)
    #expect(none.received() == [])
  }

  @Test func pinsComeFirstAndScreensBeforeSpeakers() {
    var call = FewStreams(most: 2)
    call.pin(4)
    #expect(call.received() == [1, 4])
    call.pin(3)
    call.speak(5, for: .seconds(2))
    #expect(call.received() == [3, 4])
    call.pin(3, false)
    #expect(call.received() == [4, 5])
    call.world.offer(1, of: .screen, by: 2)
    #expect(call.received() == [2, 4])
    #expect((call.world.hosts[0].shownStreams[.screen] ?? 0) > 1)
    call.pin(4, false)
    #expect(call.received() == [2, 5])
    call.world.offer(0, of: .screen, by: 2)
    #expect(call.received() == [1, 5])
  }

  @Test func whatIsPinnedOnThePageComesFirst() {
    var call = FewStreams(most: 1)
    let cameras = (1...5).map { MemberStream(call.link($0), .camera) }
    func show(_ pinned: Int?) {
      let shown = cameras.enumerated().map {
        ShownStream($1, VideoRequest(width: 320, height: 180), isPinned: $0 + 1 == pinned)
      }
      call.world.command(0) { $0.show(shown, at: $1) }
    }
    show(nil)
    #expect(call.received() == [1])
    show(4)
    #expect(call.received() == [4])
    show(5)
    #expect(call.received() == [5])
    call.world.command(0) { $0.show([], at: $1) }
    #expect(call.received() == [], "what is not shown does not count")
    show(nil)
    #expect(call.received() == [1])
  }

  @Test func aMutedCameraDoesNotCount() {
    var call = FewStreams(most: 2)
    let channel = call.channel
    call.world.command(1) { $0.setMuted(video: true, in: channel, at: $1) }
    #expect(call.received(after: .zero) == [2, 3])
    call.world.command(1) { $0.setMuted(video: false, in: channel, at: $1) }
    #expect(call.received() == [1, 2])
  }

  @Test func whoeverLeavesMakesRoomForTheNext() {
    var call = FewStreams(most: 2)
    let channel = call.channel
    call.world.command(2) { $0.leaveCall(in: channel, at: $1) }
    #expect(call.received(after: .zero) == [1, 3])
    // The others still reach this one, so that it remains a member.
    call.world.passes = { from, to, _ in from + to != 1 }
    #expect(call.received(after: .seconds(15)) == [3, 4])
  }

  @Test func aLostRequestIsRepeatedWithinASecond() {
    var call = FewStreams(most: 1)
    for turn in 0..<6 {
      let index = 3 + turn % 3
      // For 100 ms from the change on, nothing arrives.
      call.world.passes = { _, _, _ in false }
      call.pin(index)
      call.world.run(for: .milliseconds(100))
      call.world.passes = { _, _, _ in true }
      #expect(call.world.hosts[index].encoded[.camera] ?? [] == [], "turn \(turn)")
      call.world.run(for: .milliseconds(300))
      #expect(call.world.hosts[index].encoded[.camera] == [0], "turn \(turn)")
      call.pin(index, false)
      call.world.run(for: .milliseconds(270))
    }
  }

  @Test func theLimitHoldsForAllChannels() {
    var call = FewStreams(4, most: 4)
    let other = ChannelKey.fromName("\(Marker.text) another")
    call.world.join("another", other)
    call.world.run(for: .seconds(5))
    func received(in channel: ChannelID) -> Int {
      call.world.hosts[0].node.statistics(at: call.world.now).count {
        $0.link.channel == channel && $0.received?.layer != nil
      }
    }
    #expect(received(in: call.channel) + received(in: other.channelID) == 4)
    let left = received(in: call.channel) < 3 ? other.channelID : call.channel
    let stays = left == call.channel ? other.channelID : call.channel
    #expect(received(in: stays) < 3)
    call.world.command(0) { $0.leave(left, at: $1) }
    call.world.run(for: .seconds(1))
    #expect(received(in: stays) == 3)
  }

  /// No more and no fewer, whatever is pinned, muted and said.
  @Test(arguments: UInt64(1)...3) func asManyAreReceivedAsMayBe(seed: UInt64) {
    var prng = PRNG(seed: seed)
    let most = 1 + prng.below(3)
    var call = FewStreams(5, most: most, seed: seed)
    var muted: Set<Int> = []
    for _ in 0..<6 {
      let (index, channel) = (1 + prng.below(4), call.channel)
      switch prng.below(3) {
      case 0: call.pin(index, prng.below(2) == 0)
      case 1: call.speak(index, for: .milliseconds(prng.below(1500)))
      default:
        let mutes = muted.remove(index) == nil
        if mutes { muted.insert(index) }
        call.world.command(index) { $0.setMuted(video: mutes, in: channel, at: $1) }
      }
      call.speak(nil, for: .seconds(1))
      let received = call.received()
      #expect(received.count == min(most, 4 - muted.count), "seed \(seed): \(received) \(muted)")
      #expect(muted.isDisjoint(with: received))
    }
  }
}
