import MusterBase
import MusterMedia
import MusterWire
import Testing

private let small = VideoLayer(size: VideoSize(width: 320, height: 180), framesPerSecond: 30)
private let large = VideoLayer(size: VideoSize(width: 640, height: 360), framesPerSecond: 30)
private let now = Instant.zero + .seconds(100)

/// The frame that a packetizer makes of a keyframe of one layer.
private func keyframe(_ layer: VideoLayer, _ index: Int) throws -> PacketizedFrame {
  var packetizer = VideoPacketizer(layer: index, seed: 1)
  let frame = EncodedFrame(
    data: keyframeData(layer.size), isKeyframe: true, layer: index, temporalLayer: 0,
    isReference: true, capturedAt: now)
  let packets = packetizer.packetize(frame)
  return try #require(packets)
}

private func keyframeData(_ size: VideoSize) -> [UInt8] {
  var writer = Writer()
  writer.append([0x10, 0, 0, 0x9D, 0x01, 0x2A] as [UInt8])
  writer.u16(UInt16(size.width).byteSwapped)
  writer.u16(UInt16(size.height).byteSwapped)
  writer.append([1, 2, 3])
  return writer.bytes
}

// MARK: Outgoing

/// Selects the layer for a requested resolution; returns the change, which a keyframe completes.
private func select(
  _ streams: inout OutgoingStreams, _ requested: VideoRequest,
  among layers: [VideoLayer] = [small, large], prevented: LayerReason? = nil
) -> LayerChange? {
  streams.withStream(.camera) { stream in
    let selection = stream.select(
      LayerChoice.step(for: requested, among: layers), for: requested, among: layers,
      prevented: prevented, at: now)
    return selection.change
      ?? selection.keyframe.flatMap { stream.switchLayer(to: $0, wait: .zero) }
  }
}

@Test func theReasonOfALayerIsTheTrueOne() {
  var streams = OutgoingStreams(seed: 1)
  let atMost = VideoRequest(width: 320, height: 180)
  #expect(select(&streams, .best) == LayerChange(from: nil, to: large, why: .started))
  #expect(select(&streams, .best) == nil)
  #expect(select(&streams, atMost) == LayerChange(from: large, to: small, why: .requested))
  #expect(select(&streams, .none) == LayerChange(from: small, to: nil, why: .requested))
  #expect(select(&streams, .best) == LayerChange(from: nil, to: large, why: .requested))
  #expect(
    select(&streams, .best, prevented: .muted) == LayerChange(from: large, to: nil, why: .muted))
  #expect(select(&streams, .best) == LayerChange(from: nil, to: large, why: .unmuted))
  #expect(
    select(&streams, .best, prevented: .role) == LayerChange(from: large, to: nil, why: .role))
  #expect(select(&streams, .best) == LayerChange(from: nil, to: large, why: .role))
  #expect(
    select(&streams, .best, among: [small]) == LayerChange(from: large, to: small, why: .source))
  #expect(select(&streams, .best, among: []) == LayerChange(from: small, to: nil, why: .source))
}

@Test func aSmallerLayerFromTheBeginningIsTheReceiversRequest() {
  var streams = OutgoingStreams(seed: 1)
  let atMost = VideoRequest(width: 320, height: 180)
  #expect(select(&streams, atMost) == LayerChange(from: nil, to: small, why: .requested))
}

@Test func aLowerRateAndARestAreTheReceiversRequest() throws {
  var streams = OutgoingStreams(seed: 1)
  #expect(select(&streams, .best) != nil)
  let slow = VideoRequest(width: .max, height: .max, framesPerSecond: 15)
  var half = large
  half.framesPerSecond = (large.framesPerSecond + 1) / 2
  try #require(half.framesPerSecond <= 15)
  #expect(select(&streams, slow) == LayerChange(from: large, to: half, why: .requested))
  #expect(select(&streams, .outranked) == LayerChange(from: half, to: nil, why: .rank))
  #expect(select(&streams, .best) == LayerChange(from: nil, to: large, why: .rank))
}

@Test func streamsHaveSequencesAndSSRCsOfTheirOwn() throws {
  var streams = OutgoingStreams(seed: 3)
  let frame = try keyframe(large, 1)
  var headers: [RTPHeader] = []
  for id in StreamID.all {
    headers += streams.withStream(id) { stream in
      frame.payloads.map { stream.send($0, of: frame, isLast: true, at: now) }
    }
  }
  #expect(headers.map(\.payloadType) == [97, 100, 103, 106])
  #expect(headers.map { $0.ssrc &- streams.ssrcs.base } == [2, 5, 8, 11])
  #expect(Set(headers.map(\.sequence)).count == headers.count)
  #expect(streams.ids == StreamID.all)
}

@Test func keyframesAreLimitedForEachStream() {
  var streams = EncodedStreams(seed: 1)
  streams.set([
    StreamOffer(.camera, layers: [small]), StreamOffer(.screen, layers: [small, large]),
  ])
  let soon = now + .milliseconds(10)
  let answers = [
    streams.requestKeyframe(of: .camera, layer: 0, isShared: false, at: now),
    streams.requestKeyframe(of: .camera, layer: 0, isShared: false, at: soon),
    streams.requestKeyframe(of: .screen, layer: 0, isShared: false, at: soon),
  ]
  #expect(answers == [true, false, true])
  let due = streams.dueKeyframes(at: now + KeyframeLimiter.interval)
  #expect(due.map(\.stream) == [.camera] && due.map(\.layer) == [0])
  streams.set([StreamOffer(.camera, layers: [small])])
  #expect(streams.offers.map(\.id) == [.camera])
  #expect(streams.layers(of: .screen).isEmpty)
}

@Test func retransmissionsAreAsManyAsAllLayersSend() throws {
  var streams = OutgoingStreams(seed: 2)
  let payload = [UInt8](repeating: 0, count: 1000)
  var sequences: [[UInt16]] = []
  for (index, layer) in [small, large].enumerated() {
    let frame = try keyframe(layer, index)
    sequences.append(
      streams.withStream(.camera) { stream in
        (0..<50).map { _ in stream.send(payload[...], of: frame, isLast: false, at: now).sequence }
      })
  }
  let again = [(0, 0), (1, 0), (0, 50), (1, 50)].map { layer, milliseconds in
    streams.withStream(.camera) {
      $0.retransmissions(
        of: sequences[layer], layer: layer, roundTrip: .zero,
        at: now + .milliseconds(milliseconds)
      ).count
    }
  }
  #expect(again == [50, 50, 0, 0])
}

@Test func aChangeOfPathResendsTheNewestPacketsFiveTimesAtMost() throws {
  var streams = OutgoingStreams(seed: 2)
  #expect(select(&streams, .best, among: [small]) != nil)
  let frame = try keyframe(small, 0)
  let sequences = streams.withStream(.camera) { stream in
    (0..<100).map { _ in stream.send([1], of: frame, isLast: false, at: now).sequence }
  }
  func repeats(since start: Instant) -> [UInt16] {
    streams.withStream(.camera) { $0.repeats(since: start, at: now).map(\.header.sequence) }
  }
  #expect(repeats(since: now + .milliseconds(1)).isEmpty)
  for _ in 0..<5 { #expect(repeats(since: now) == Array(sequences.suffix(64))) }
  #expect(repeats(since: now) == Array(sequences.prefix(36)))
}

// MARK: Incoming

/// Sends a keyframe to the receiver, and before it the reason unless that is nil; returns the layer
/// changes that the receiver reports.
private func receive(
  _ streams: inout IncomingStreams, _ id: StreamID, _ layer: VideoLayer, why: LayerReason? = nil,
  from outgoing: inout OutgoingStreams
) throws -> [LayerChange] {
  let frame = try keyframe(layer, 0)
  var changes: [LayerChange] = []
  if let why {
    let change = streams.receive(SentLayer(id, layer, why: why), at: now)
    if let change { changes.append(change) }
  }
  for (index, payload) in frame.payloads.enumerated() {
    let header = outgoing.withStream(id) {
      $0.send(payload, of: frame, isLast: index == frame.payloads.count - 1, at: now)
    }
    let packet = RTPPacket(header: header, payload: payload[...])
    for case .frame(let frame) in streams.receive(packet, of: id, at: now) {
      let showing = streams.show(frame, of: id)
      if let change = showing?.change { changes.append(change) }
    }
  }
  return changes
}

@Test func aReceivedLayerGoesOffWithItsReason() throws {
  var streams = IncomingStreams()
  var sender = OutgoingStreams(seed: 5)
  let offer = StreamOffer(.screen, layers: [small, large])
  func expect(
    _ offer: StreamOffer?, _ requested: VideoRequest = .best, isAllowed: Bool = true
  ) -> LayerChange? {
    streams.expect(.screen, offer, requested, isAllowed: isAllowed, at: now).change
  }
  #expect(expect(offer) == nil)
  let first = try receive(&streams, .screen, large, why: .started, from: &sender)
  #expect(first == [LayerChange(from: nil, to: large, why: .started)])
  var muted = offer
  muted.isMuted = true
  #expect(expect(muted) == LayerChange(from: large, to: nil, why: .muted))
  // A packet still in flight changes nothing.
  let late = try receive(&streams, .screen, large, from: &sender)
  #expect(late.isEmpty)
  #expect(streams[.screen]?.layer == nil)
  #expect(expect(offer) == nil)
  // The sender says the reason from before, or nothing yet.
  let early = try receive(&streams, .screen, large, from: &sender)
  #expect(early.isEmpty)
  let second = try receive(&streams, .screen, large, why: .unmuted, from: &sender)
  #expect(second == [LayerChange(from: nil, to: large, why: .unmuted)])
  #expect(expect(offer, .none) == LayerChange(from: large, to: nil, why: .requested))
  #expect(expect(offer, .best, isAllowed: false) == nil)
  #expect(streams[.screen]?.why == .role)
}

@Test func aWithdrawnStreamEndsAndBeginsAnew() throws {
  var streams = IncomingStreams()
  var sender = OutgoingStreams(seed: 6)
  let offer = StreamOffer(.screen, layers: [small])
  _ = streams.expect(.screen, offer, .best, isAllowed: true, at: now)
  _ = try receive(&streams, .screen, small, why: .started, from: &sender)
  let (change, hasEnded) = streams.expect(.screen, nil, .best, isAllowed: true, at: now)
  #expect(change == LayerChange(from: small, to: nil, why: .source) && hasEnded)
  #expect(streams[.screen] == nil)
  _ = streams.expect(.screen, offer, .best, isAllowed: true, at: now)
  let again = try receive(&streams, .screen, small, why: .source, from: &sender)
  #expect(again == [LayerChange(from: nil, to: small, why: .source)])
}

@Test func aReceiverReportsTheReasonsOfItsSender() throws {
  var streams = IncomingStreams()
  var sender = OutgoingStreams(seed: 8)
  func tell(_ layer: VideoLayer?, _ why: LayerReason) -> LayerChange? {
    streams.receive(SentLayer(.camera, layer, why: why), at: now)
  }
  _ = streams.expect(
    .camera, StreamOffer(.camera, layers: [small, large]), .best, isAllowed: true, at: now)
  let first = try receive(&streams, .camera, large, why: .started, from: &sender)
  #expect(first == [LayerChange(from: nil, to: large, why: .started)])
  // A layer of another size begins with its first frame, a frame rate at once.
  #expect(tell(small, .bandwidth) == nil)
  #expect(streams[.camera]?.layer == large && streams[.camera]?.why == .started)
  let second = try receive(&streams, .camera, small, from: &sender)
  #expect(second == [LayerChange(from: large, to: small, why: .bandwidth)])
  let slower = VideoLayer(size: small.size, framesPerSecond: 15)
  #expect(tell(slower, .bandwidth) == LayerChange(from: small, to: slower, why: .bandwidth))
  #expect(tell(slower, .requested) == nil)
  #expect(streams[.camera]?.why == .requested)
  #expect(tell(nil, .bandwidth) == LayerChange(from: slower, to: nil, why: .bandwidth))
  // A frame that was still in flight does not bring the layer back.
  let late = try receive(&streams, .camera, small, from: &sender)
  #expect(late.isEmpty && streams[.camera]?.layer == nil)
}

@Test func aReceiverIsNotifiedOfEveryChange() {
  var streams = OutgoingStreams(seed: 9)
  func news() -> SentLayer? { streams.withStream(.camera) { $0.notification() } }
  #expect(news() == SentLayer(.camera, nil, why: .started))
  _ = select(&streams, .best)
  #expect(news() == SentLayer(.camera, large, why: .started))
  #expect(news() == nil)
  _ = select(&streams, .best, prevented: .muted)
  #expect(news() == SentLayer(.camera, nil, why: .muted))
  _ = select(&streams, .best, prevented: .role)
  #expect(news() == SentLayer(.camera, nil, why: .role))
}

@Test func streamsOfOneSenderDoNotDisturbEachOther() throws {
  var streams = IncomingStreams()
  var sender = OutgoingStreams(seed: 7)
  for id in StreamID.all {
    let name = id <= .screen ? nil : "board"
    _ = streams.expect(
      id, StreamOffer(id, name: name, layers: [small]), .best, isAllowed: true, at: now)
    let changes = try receive(&streams, id, small, why: .started, from: &sender)
    #expect(changes.count == 1)
  }
  #expect(streams.ids == StreamID.all)
  let blocks = streams.reportBlocks(at: now)
  #expect(blocks.count == StreamID.all.count)
}
