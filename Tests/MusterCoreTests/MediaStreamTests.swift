import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterMedia
import MusterSimulator
import MusterWire
import Testing

/// Two nodes in a call; the first one sends a camera with two layers and a screen with three.
private struct Sharing {
  static let key = ChannelKey.fromName("\(Marker.text) streams")
  let channel = key.channelID
  var world = CoreWorld(2, seed: 11)

  init() {
    world.offer(2, of: .camera, by: 0)
    world.offer(3, of: .screen, by: 0)
    // The first frames come when the probes have shown what the path carries.
    world.run(for: .milliseconds(155))
    world.join("streams", Self.key)
    world.run(for: .seconds(5))
  }

  /// The layers that the second node reported since a point in its events.
  func changes(_ stream: StreamID, since start: Int = 0) -> [LayerChange] {
    world.hosts[1].events.dropFirst(start).compactMap { event in
      guard case .layer(_, stream, .received, let change) = event else { return nil }
      return change
    }
  }

  var eventCount: Int { world.hosts[1].events.count }

  mutating func watch(_ resolution: VideoRequest, _ stream: StreamID?) {
    let channel = channel
    world.command(1) { $0.watch(resolution, stream: stream, of: nil, in: channel, at: $1) }
  }
}

private let best = VideoSize(width: 640, height: 360)
private let middle = VideoSize(width: 320, height: 180)

@Test func eachStreamHasItsFirstFrameAndItsLayer() {
  let sharing = Sharing()
  let first = sharing.world.hosts[1].events.compactMap { event -> (StreamID, VideoSize)? in
    guard case .firstFrame(_, let stream, _, let size) = event else { return nil }
    return (stream, size)
  }
  #expect(first.map(\.0).sorted() == [.camera, .screen])
  #expect(first.first { $0.0 == .camera }?.1 == middle)
  #expect(first.first { $0.0 == .screen }?.1 == best)
  #expect(sharing.changes(.screen).map(\.why) == [.started])
  #expect(sharing.world.hosts[0].encoded == [.camera: [1], .screen: [2]])
  let statistics = sharing.world.hosts[1].node.statistics(at: sharing.world.now)
  #expect(statistics.first?.streams.map(\.stream) == [.screen])
  #expect(statistics.first?.received?.layer?.size == middle)
  #expect(statistics.first?.streams.first?.received?.layer?.size == best)
  #expect(statistics.first?.streams.first?.sent == nil)
}

@Test func subscriptionsAreOfOneStream() {
  var sharing = Sharing()
  let start = sharing.eventCount
  sharing.watch(VideoRequest(width: 320, height: 180), .screen)
  sharing.world.run(for: .seconds(2))
  #expect(sharing.world.hosts[0].encoded == [.camera: [1], .screen: [1]])
  sharing.watch(.none, .camera)
  sharing.world.run(for: .seconds(2))
  #expect(sharing.world.hosts[0].encoded == [.camera: [], .screen: [1]])
  #expect(sharing.changes(.screen, since: start).map(\.why) == [.requested])
  #expect(sharing.changes(.camera, since: start).map(\.to?.size) == [nil])
  let before = sharing.world.hosts[1].shownStreams
  sharing.world.run(for: .seconds(2))
  let after = sharing.world.hosts[1].shownStreams
  #expect(after[.camera] == before[.camera])
  #expect(after[.screen, default: 0] > before[.screen, default: 0])
}

@Test func aMutedCameraLeavesTheScreenAlone() {
  var sharing = Sharing()
  let start = sharing.eventCount
  sharing.world.command(0) { $0.setMuted(video: true, at: $1) }
  sharing.world.run(for: .seconds(2))
  #expect(sharing.world.hosts[0].encoded == [.camera: [], .screen: [2]])
  #expect(sharing.changes(.camera, since: start).map(\.why) == [.muted])
  sharing.world.command(0) { $0.setMuted(video: false, at: $1) }
  sharing.world.run(for: .seconds(2))
  #expect(sharing.changes(.camera, since: start).map(\.why) == [.muted, .unmuted])
  #expect(sharing.changes(.screen, since: start).isEmpty)
}

@Test func aStreamThatIsWithdrawnGoesOff() {
  var sharing = Sharing()
  let start = sharing.eventCount
  sharing.world.offer(0, of: .screen, by: 0)
  sharing.world.run(for: .seconds(2))
  #expect(sharing.changes(.screen, since: start).map(\.to) == [nil])
  #expect(sharing.changes(.screen, since: start).map(\.why) == [.source])
  #expect(
    sharing.world.hosts[1].node.statistics(at: sharing.world.now).first?.streams.isEmpty == true)
}

@Test func bothEndsReportTheSameChangesAndReasons() {
  var sharing = Sharing()
  sharing.watch(VideoRequest(width: 320, height: 180), .screen)
  sharing.world.run(for: .seconds(2))
  sharing.watch(.none, .screen)
  sharing.world.run(for: .seconds(2))
  sharing.watch(.best, .screen)
  sharing.world.run(for: .seconds(2))
  sharing.world.command(0) { $0.setMuted(video: true, at: $1) }
  sharing.world.run(for: .seconds(2))
  sharing.world.command(0) { $0.setMuted(video: false, at: $1) }
  sharing.world.run(for: .seconds(2))
  for stream in [StreamID.camera, .screen] {
    let sent = sharing.world.hosts[0].events.compactMap { event -> LayerChange? in
      guard case .layer(_, stream, .sent, let change) = event else { return nil }
      return change
    }
    #expect(sharing.changes(stream) == sent)
    #expect(sent.count == (stream == .screen ? 4 : 3), "\(sent)")
  }
  let now = sharing.world.now
  let camera = sharing.world.hosts.map { $0.node.statistics(at: now).first }
  #expect(camera[0]?.sent?.why == .unmuted && camera[1]?.received?.why == .unmuted)
}

/// The message that the sender had stopped is lost, and what it says next it has said before.
@Test func aRepeatedReasonIsTakenAfterAPause() {
  var sharing = Sharing()
  for round in 0..<6 {
    sharing.watch(.none, .screen)
    if round > 0 { sharing.world.passes = { from, _, _ in from != 0 } }
    sharing.world.run(for: .milliseconds(300))
    sharing.world.passes = { _, _, _ in true }
    sharing.watch(.best, .screen)
    sharing.world.run(for: .milliseconds(3_000 + 170 * round))
  }
  let changes = sharing.changes(.screen)
  #expect(changes.map(\.to?.size) == [best] + Array(repeating: [nil, best], count: 6).joined())
  #expect(changes.dropFirst().allSatisfy { $0.why == .requested })
}

@Test func aNodeEntersMuted() {
  var configuration = Node.Configuration()
  configuration.muted = [.audio, .video]
  var entropy = Entropy.seeded(5)
  var node = Node(
    identity: Identity(generating: &entropy), entropy: entropy, seed: 5,
    configuration: configuration)
  let layer = VideoLayer(size: best, framesPerSecond: 30)
  let now = Instant.zero + .seconds(10)
  _ = node.setSources([StreamOffer(.camera, layers: [layer])], hasAudio: true, at: now)
  let setup = ChannelSetup(name: "muted", key: Sharing.key)
  _ = node.join(setup, call: false, at: now)
  let own = node.ownMember(in: setup.id)
  #expect(own?.flags.isSuperset(of: [.audioMuted, .videoMuted]) == true)
  #expect(own?.stream(.camera)?.isMuted == true)
}

/// The timestamps of a sender's streams share one clock, which does not reveal its machine's
/// uptime.
@Test func theMediaClockIsOneForAllStreamsAndNotBootTime() throws {
  let hosts = Sharing().world.hosts
  let offsets = try hosts.map { host in
    let earliest = try #require(host.captureOffsets.min())
    let latest = try #require(host.captureOffsets.max())
    #expect(host.captureOffsets.count > 100)
    #expect(latest - earliest < .milliseconds(100), "\(earliest) to \(latest)")
    return earliest
  }
  #expect(offsets.allSatisfy { $0 > .seconds(86_400) }, "\(offsets)")
  #expect(abs((offsets[0] - offsets[1]).inMilliseconds) > 86_400_000, "\(offsets)")
}
