import MusterBase
import MusterWire
import Testing

@Test func everyStreamAndLayerHasItsPayloadType() {
  var types: [UInt8] = []
  for stream in StreamID.all {
    for layer in 0..<Limits.spatialLayers {
      let type = PayloadType.video(stream, layer: layer)
      types.append(type)
      let known = PayloadType.video(of: type)
      #expect(known?.stream == stream && known?.layer == layer)
    }
  }
  #expect(types == (96...107).map { UInt8($0) })
  for type in UInt8.min...UInt8.max where !types.contains(type) {
    #expect(PayloadType.video(of: type) == nil)
  }
}

@Test(arguments: [0, 1000, UInt32.max - 5, UInt32.max])
func everyStreamAndLayerHasItsSSRC(base: UInt32) {
  let plan = SSRCPlan(base: base)
  var numbers: [UInt32] = []
  for stream in StreamID.all {
    for layer in 0..<Limits.spatialLayers {
      let ssrc = plan.video(stream, layer: layer)
      numbers.append(ssrc)
      let known = plan.video(of: ssrc)
      #expect(known?.stream == stream && known?.layer == layer)
    }
  }
  #expect(numbers == (1...12).map { base &+ $0 })
  for ssrc in [base, base &- 1, base &+ 13] { #expect(plan.video(of: ssrc) == nil) }
}

@Test func streamsAreNumberedUpToTheirLimit() {
  #expect(StreamID.all.count == Limits.videoStreams)
  #expect(StreamID(0) == .camera && StreamID(1) == .screen)
  #expect(StreamID(-1) == nil && StreamID(Limits.videoStreams) == nil)
}

@Test func subscriptionsToUnknownStreamsAreIgnored() throws {
  let ping = Control.encode([.ping(7)])
  let known = Control.encode([.subscribe(Subscription(.screen, .none))])
  #expect(known.dropFirst() == [3, 0, 5, 1, 0, 0, 0, 0])
  for number: UInt8 in [4, 255] {
    let unknown: [UInt8] = [3, 0, 5, number, 2, 128, 1, 104]
    #expect(try Control.decode(ping + unknown) == [.ping(7)])
  }
}

@Test func subscriptionsNameTheRateAndTheReasonOnlyIfTheyMatter() throws {
  let slow = Subscription(.camera, VideoRequest(width: 320, height: 180, framesPerSecond: 15))
  #expect(Control.encode([.subscribe(slow)]).dropFirst() == [3, 0, 7, 0, 1, 64, 0, 180, 15, 2])
  let rank = Subscription(.screen, .outranked)
  #expect(Control.encode([.subscribe(rank)]).dropFirst() == [3, 0, 7, 1, 0, 0, 0, 0, 255, 9])
  let other: [UInt8] = [1, 3, 0, 7, 1, 0, 0, 0, 0, 255, 77]
  #expect(try Control.decode(other) == [.subscribe(Subscription(.screen, .none))])
  #expect(throws: WireError.self) { try Control.decode([1, 3, 0, 6, 1, 0, 0, 0, 0, 255]) }
  #expect(throws: WireError.self) { try Control.decode([1, 3, 0, 8, 1, 0, 0, 0, 0, 255, 2, 0]) }
}

@Test func sentLayersAreReadAsFarAsTheyAreKnown() throws {
  let message: [UInt8] = [1, 15, 0, 7, 1, 2, 128, 1, 104, 15, 8]
  let layer = VideoLayer(size: VideoSize(width: 640, height: 360), framesPerSecond: 15)
  #expect(
    try Control.decode(message) == [.sentLayer(SentLayer(.screen, layer, why: .bandwidth))])
  let later = message.dropLast() + [200]
  #expect(
    try Control.decode(Array(later)) == [.sentLayer(SentLayer(.screen, layer, why: .unknown))])
  let flat: [UInt8] = [1, 15, 0, 7, 0, 2, 128, 0, 0, 15, 2]
  #expect(try Control.decode(flat) == [.sentLayer(SentLayer(.camera, nil, why: .requested))])
  let unknown: [UInt8] = [1, 15, 0, 7, 4, 2, 128, 1, 104, 15, 8]
  #expect(try Control.decode(unknown) == [])
}

/// A presence whose streams are these bytes, count included.
private func presence(_ streams: [UInt8]) -> [UInt8] {
  // Author, sequence, Lamport counter, kind; boot id, flags, no name.
  [UInt8](repeating: 0, count: 48) + [1] + [UInt8](repeating: 0, count: 11) + streams
}

private func stream(_ number: UInt8, _ name: String, flags: UInt8 = 0) -> [UInt8] {
  [number, UInt8(name.utf8.count)] + Array(name.utf8) + [flags, 0]
}

@Test func announcedStreamsAreRead() throws {
  let entry = try Entry(
    decoding: presence([2] + stream(1, "screen", flags: 2) + stream(3, "board-2", flags: 0xFD)))
  guard case .presence(let read) = entry.body else { throw WireError.invalidValue }
  let board = try #require(StreamID(3))
  #expect(
    read.streams == [
      StreamOffer(.screen, isPattern: true, layers: []),
      StreamOffer(board, name: "board-2", isMuted: true, layers: []),
    ])
}

@Test func streamsThatCannotBeAreRefused() {
  let camera = stream(0, "camera")
  let wrong: [[UInt8]] = [
    [5] + camera, [1] + stream(4, "x"), [1] + stream(0, ""), [1] + stream(2, "Board"),
    [1] + stream(2, "../x"), [1] + stream(2, "a b"), [1] + stream(2, "abcdefghijklmnopq"),
    [2] + camera + camera, [2] + stream(1, "screen") + camera,
    [1] + Array(camera.dropLast()) + [4], [2] + camera,
  ]
  for streams in wrong {
    #expect(throws: WireError.self, "\(streams)") { try Entry(decoding: presence(streams)) }
  }
}
