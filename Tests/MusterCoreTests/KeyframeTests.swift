import MusterBase
import MusterCore
import MusterCrypto
import MusterMedia
import MusterSimulator
import MusterWire
import Testing

/// A sender of one layer, and two receivers of it.
private struct Sharing {
  static let key = ChannelKey.fromName("\(Marker.text) keyframes")
  let channel = key.channelID
  var world = CoreWorld(3, seed: 3)

  init() {
    world.join("keyframes", Self.key)
    world.run(for: .seconds(8))
  }

  var keyframes: Int { world.hosts[0].keyframes }

  func shown(_ index: Int) -> Int {
    world.hosts[index].shown[LinkID(channel: channel, peer: world.id(0))] ?? 0
  }

  mutating func requestKeyframe(_ index: Int) {
    let link = LinkID(channel: channel, peer: world.id(0))
    world.command(index) { $0.requestKeyframe(of: .camera, from: link, at: $1) }
  }

  mutating func watch(_ resolution: VideoRequest, _ index: Int) {
    let channel = channel
    world.command(index) { $0.watch(resolution, stream: .camera, of: nil, in: channel, at: $1) }
  }
}

@Test func aReceiverBeginsWithCachedFrames() {
  var sharing = Sharing()
  sharing.watch(.none, 2)
  sharing.world.run(for: .seconds(3))
  sharing.requestKeyframe(1)
  sharing.world.run(for: .seconds(1))
  let (keyframes, shown) = (sharing.keyframes, [1, 2].map(sharing.shown))
  sharing.watch(.best, 2)
  sharing.world.run(for: .milliseconds(250))
  #expect(sharing.shown(2) > shown[1])
  sharing.world.run(for: .seconds(3))
  #expect(sharing.keyframes == keyframes)
  let expected = SyntheticSource.framesPerSecond * 3
  #expect(sharing.shown(1) - shown[0] >= expected && sharing.shown(2) - shown[1] >= expected)
  // Later there are none, and one keyframe is for both.
  sharing.watch(.none, 2)
  sharing.world.run(for: .seconds(1))
  sharing.watch(.best, 2)
  sharing.world.run(for: .seconds(1))
  #expect(sharing.keyframes == keyframes + 1)
}

@Test func aReceiversRequestsCostTheOthersLittle() {
  var sharing = Sharing()
  let (keyframes, shown) = (sharing.keyframes, sharing.shown(1))
  for _ in 0..<100 {
    sharing.requestKeyframe(2)
    sharing.world.run(for: .milliseconds(100))
  }
  #expect((4...8).contains(sharing.keyframes - keyframes), "\(sharing.keyframes - keyframes)")
  #expect(sharing.shown(1) - shown >= SyntheticSource.framesPerSecond * 10 - 1)
}

/// What nobody else gets costs nobody else anything.
@Test func aSingleReceiverGetsAKeyframe() {
  var sharing = Sharing()
  sharing.watch(.none, 2)
  sharing.world.run(for: .seconds(3))
  let keyframes = sharing.keyframes
  for _ in 0..<100 {
    sharing.requestKeyframe(1)
    sharing.world.run(for: .milliseconds(100))
  }
  #expect(sharing.keyframes - keyframes >= 9, "\(sharing.keyframes - keyframes)")
}
