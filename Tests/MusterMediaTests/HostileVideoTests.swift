import MusterBase
import MusterMedia
import MusterWire
import Testing

/// The packets that a receiver may hold: one stream per layer, each within its limit.
private let mostPackets = Limits.spatialLayers * Limits.packetsInAssembly

private func drain(_ receiver: inout VideoReceiver, until end: Instant) {
  var ticks = 0
  while let deadline = receiver.deadline, deadline <= end {
    _ = receiver.tick(at: deadline)
    ticks += 1
    #expect(ticks < 10_000)
    if ticks >= 10_000 { return }
  }
}

@Test(arguments: UInt64(0)..<8) func randomBytesNeverTrapAReceiver(seed: UInt64) {
  var random = PRNG(seed: seed)
  var receiver = VideoReceiver()
  var now = Instant.milliseconds(1000)
  for _ in 0..<2000 {
    var bytes = random.bytes(random.below(80))
    if bytes.count > 2, random.chance(0.9) {
      bytes[0] = 0x80
      bytes[1] = UInt8(96 + random.below(3)) | UInt8(random.below(2) << 7)
    }
    now = now + .microseconds(random.below(3000))
    guard let packet = try? RTPPacket(decoding: bytes) else { continue }
    _ = receiver.receive(packet, at: now)
    drain(&receiver, until: now)
    #expect(receiver.packetsHeld <= mostPackets)
  }
  _ = receiver.reportBlocks(at: now)
}

/// Sends well-formed packets with random gaps, duplicates, markers, layers and SSRCs.
@Test(arguments: UInt64(0)..<8) func nearlyRightPacketsKeepMemoryBounded(seed: UInt64) {
  var random = PRNG(seed: seed)
  var receiver = VideoReceiver()
  var now = Instant.milliseconds(1000)
  var sequence = UInt16(truncatingIfNeeded: random.next())
  for number in 0..<4000 {
    sequence &+= UInt16([1, 1, 1, 1, 2, 3, 40, 300, 40_000][random.below(9)])
    let descriptor = VP8Descriptor(
      isNonReference: false, isFrameStart: random.chance(0.4),
      pictureID: UInt16(random.below(0x8000)), tl0PicIdx: UInt8(random.below(256)),
      temporalLayer: UInt8(random.below(3)), isLayerSync: random.chance(0.5), keyIndex: 0)
    var writer = Writer()
    descriptor.write(to: &writer)
    writer.append([UInt8(random.below(2)), 0, 0, 0x9D, 1, 0x2A, 64, 1, 180, 0] as [UInt8])
    let packet = RTPPacket(
      header: RTPHeader(
        marker: random.chance(0.3), payloadType: 100 + UInt8(random.below(2)),
        sequence: sequence, timestamp: UInt32(number / 4) &* 3000,
        ssrc: UInt32(random.below(3))),
      payload: writer.bytes[...])
    now = now + .microseconds(random.below(5000))
    _ = receiver.receive(packet, at: now)
    if random.chance(0.1) { _ = receiver.receive(packet, at: now) }
    if random.chance(0.01) { _ = receiver.requestKeyframe(at: now) }
    drain(&receiver, until: now)
    #expect(receiver.packetsHeld <= mostPackets)
  }
  #expect(receiver.statistics(at: now).keyframesRequested < 300)
}

/// Without repair, a frame is delivered only if it is complete and its references were delivered.
@Test(arguments: UInt64(0)..<12) func onlyDecodableChainsAreDelivered(seed: UInt64) {
  var random = PRNG(seed: seed)
  var sender = ModelSender(seed: seed, firstSequence: UInt16(truncatingIfNeeded: random.next()))
  var receiver = VideoReceiver()
  var decoder = ModelDecoder()
  var now = Instant.milliseconds(1000)
  var held: [RTPPacket] = []
  var delivered = 0
  for number in 0..<400 {
    let packets = sender.frame(bytes: 500 + random.below(4000), keyframe: number % 29 == 0, at: now)
    for packet in packets where !random.chance(0.08) {
      held.append(packet)
      if random.chance(0.05) { held.append(packet) }
    }
    if held.count > 1, random.chance(0.3) {
      held.swapAt(random.below(held.count), random.below(held.count))
    }
    now = now + .milliseconds(33)
    var outputs = receiver.tick(at: now)
    while held.count > random.below(6) {
      outputs += receiver.receive(held.removeFirst(), at: now)
    }
    for frame in outputs.frames {
      let id = decoder.decode(frame.data)
      #expect(id != nil, "seed \(seed), frame \(number)")
      delivered += 1
    }
  }
  #expect(delivered > 30, "seed \(seed)")
}

@Test func anEndlessFrameIsGivenUp() {
  var receiver = VideoReceiver()
  var writer = Writer()
  VP8Descriptor(
    isNonReference: false, isFrameStart: false, pictureID: 1, tl0PicIdx: 1, temporalLayer: 0,
    isLayerSync: false, keyIndex: 0
  ).write(to: &writer)
  writer.append([UInt8](repeating: 7, count: 1000))
  for sequence in UInt16(0)..<5000 {
    let header = RTPHeader(
      marker: false, payloadType: 100, sequence: sequence, timestamp: 1, ssrc: 1)
    let packet = RTPPacket(header: header, payload: writer.bytes[...])
    let outputs = receiver.receive(packet, at: .milliseconds(1000 + Int(sequence)))
    #expect(outputs.frames.isEmpty)
  }
  #expect(receiver.packetsHeld <= Limits.packetsInAssembly)
}
