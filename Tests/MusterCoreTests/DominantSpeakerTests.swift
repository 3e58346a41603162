import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterSimulator
import MusterWire
import Testing

/// The dominant speaker as nodes report it.
struct DominantSpeakerTests {
  private static let key = ChannelKey.fromName("\(Marker.text) speakers")
  private let channel = key.channelID

  /// Three nodes in a call, of which one or none speaks.
  private func world(speaker: Int?) -> CoreWorld {
    var world = CoreWorld(3)
    world.level = Self.levels(speaker)
    world.join("speakers", Self.key)
    world.run(for: .seconds(5))
    return world
  }

  /// Words of 140 ms with pauses of 60 ms.
  private static func levels(_ speaker: Int?) -> (Int, Instant) -> UInt8 {
    { index, now in
      index == speaker && now.nanoseconds / 20_000_000 % 10 < 7 ? 25 : 70
    }
  }

  private func speakers(_ world: CoreWorld, _ index: Int) -> [NodeID?] {
    world.hosts[index].events.compactMap {
      if case .dominantSpeaker(let member) = $0 { member } else { nil }
    }
  }

  @Test func everybodyReportsTheSameSpeakers() {
    var world = world(speaker: nil)
    for index in 0..<3 { #expect(speakers(world, index).isEmpty) }
    for speaker in [1, 0, 2] {
      world.level = Self.levels(speaker)
      world.run(for: .seconds(2))
    }
    world.level = Self.levels(nil)
    world.run(for: .seconds(10))
    for index in 0..<3 {
      #expect(speakers(world, index) == [1, 0, 2].map { world.id($0) })
      #expect(world.hosts[index].node.dominantSpeaker(in: channel) == world.id(2))
    }
  }

  @Test func aSpeakerWhoLeavesTheCallIsNoSpeakerAnyMore() {
    var world = world(speaker: 1)
    let id = world.id(1)
    world.call(1) { [channel] in $0.leaveCall(in: channel, at: $1) }
    world.run(for: .seconds(2))
    for index in 0..<3 {
      #expect(speakers(world, index) == [id, nil])
      #expect(world.hosts[index].node.dominantSpeaker(in: channel) == nil)
    }
  }

  @Test func whoeverIsMutedIsNotHeard() {
    var world = world(speaker: nil)
    world.call(1) { [channel] in $0.setMuted(audio: true, in: channel, at: $1) }
    world.level = Self.levels(1)
    world.run(for: .seconds(3))
    for index in 0..<3 { #expect(speakers(world, index).isEmpty) }
    world.call(1) { [channel] in $0.setMuted(audio: false, in: channel, at: $1) }
    world.run(for: .seconds(2))
    for index in 0..<3 { #expect(speakers(world, index) == [world.id(1)]) }
  }
}
