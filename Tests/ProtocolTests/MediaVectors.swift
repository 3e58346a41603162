import MusterBase
import MusterCrypto
import MusterMedia
import MusterWire
import Testing

/// The base of Anna's SSRCs, and when the packets of the examples were captured.
private let base: UInt32 = 0x5A5B_5C00
private let captured = Instant(nanoseconds: 100_500_000_000)
private let reporter: UInt32 = 0x6A6B_6C00

let mediaVectors = Topic(
  name: "media", section: 13, description: "RTP packets of audio and video.",
  vectors: [
    Vector(
      "rtp-audio", "An Opus packet, here cut short.",
      [
        "payload-type": .number(111), "sequence": .number(1000), "captured-at-ms": .number(100_500),
        "ssrc": .hex(bigEndian(base)), "level": .number(30), "payload": .hex([0x78, 0xFF, 0xFE]),
      ]
    ) { inputs in
      var sender = RTPSender(
        payloadType: UInt8(try inputs.number("payload-type")), ssrc: base,
        firstSequence: UInt16(try inputs.number("sequence")), historyCapacity: 1)
      var timestamps = AudioTimestamps()
      let payload = try inputs.bytes("payload")
      let header = sender.send(
        payload[...], marker: false, timestamp: timestamps.next(capturedAt: captured),
        audioLevel: UInt8(try inputs.number("level")), at: captured)
      return header.encoded + payload
    },
    Vector(
      "rtp-audio-copy", "The same packet with a copy of the one of 40 ms before.",
      [
        "sequence": .number(1000), "captured-at-ms": .number(100_500),
        "ssrc": .hex(bigEndian(base)),
        "level": .number(30), "payload": .hex([0x78, 0xFF, 0xFE]),
        "copied-payload": .hex([0x78, 0x01, 0x02]),
      ]
    ) { inputs in
      var sender = AudioSender(
        ssrc: base, firstSequence: UInt16(try inputs.number("sequence")) - 2)
      let block = ReportBlock(
        ssrc: base, fractionLost: 128, cumulativeLost: 0, highestSequence: 0, jitter: 0,
        lastReport: 0, delaySinceLastReport: 0)
      sender.receive(block, at: captured)
      sender.adapt(
        to: AudioSender.Conditions(
          roundTrip: .milliseconds(40), queueDelay: .zero, estimate: nil, spareRate: nil,
          takesCopies: true, takesLongPackets: false),
        at: captured)
      let level = UInt8(try inputs.number("level"))
      var timestamps = AudioTimestamps()
      let payloads = [try inputs.bytes("copied-payload"), [0], try inputs.bytes("payload")]
      var packet: [UInt8] = []
      for (index, data) in payloads.enumerated() {
        let at = captured + .milliseconds(20 * (index - 2))
        let sent = sender.send(
          EncodedAudio(data: data, level: level, capturedAt: at),
          timestamp: timestamps.next(capturedAt: at), at: at)
        packet = sent.map { $0.header.encoded + $0.payload } ?? []
      }
      return packet
    },
    Vector(
      "rtp-audio-long", "A long packet, whose first frame was captured then.",
      [
        "sequence": .number(1000), "captured-at-ms": .number(100_500),
        "ssrc": .hex(bigEndian(base)), "level": .number(30),
        "payload": .hex([0x4B, 3, 1, 2, 3, 4, 5, 6]),
      ]
    ) { inputs in
      var sender = AudioSender(ssrc: base, firstSequence: UInt16(try inputs.number("sequence")) - 1)
      sender.adapt(
        to: AudioSender.Conditions(
          roundTrip: .milliseconds(40), queueDelay: .zero, estimate: 64, spareRate: 0,
          takesCopies: true, takesLongPackets: true),
        at: captured)
      let long = EncodedAudio.LongPacket(
        data: try inputs.bytes("payload"), level: UInt8(try inputs.number("level")))
      var timestamps = AudioTimestamps()
      // The packet of one frame after which packets are long, and the frames of the long one.
      let packets = (-1..<3).map { frame in
        let at = captured + .milliseconds(20 * frame)
        let isLast = frame == -1 || frame == 2
        return sender.send(
          EncodedAudio(
            data: [0], level: 127, capturedAt: at, longPacket: isLast ? long : nil),
          timestamp: timestamps.next(capturedAt: at), at: at)
      }
      return packets[3].map { $0.header.encoded + $0.payload } ?? []
    },
    video(
      "rtp-video", "The only packet of a keyframe of the camera.", payloadType: 97, ssrc: base + 2,
      sequence: 2000, pictureID: 4660, tl0PicIdx: 86, keyIndex: 9),
    video(
      "rtp-screen", "The only packet of a keyframe of the screen.", payloadType: 99,
      ssrc: base + 4, sequence: 3000, pictureID: 7, tl0PicIdx: 2, keyIndex: 1),
    Vector(
      "rtp-frame-headers", "The headers and descriptors of a frame that takes three packets.",
      severalPackets
    ) { try packets($0).flatMap { $0.prefix(18) } },
    Vector(
      "rtp-frame-hash", "BLAKE2b-256 of the three whole packets.", severalPackets
    ) { Blake2b.hash(try packets($0).flatMap { $0 }) },
  ])

private func video(
  _ name: String, _ description: String, payloadType: UInt64, ssrc: UInt32, sequence: UInt64,
  pictureID: UInt64, tl0PicIdx: UInt64, keyIndex: UInt64
) -> Vector {
  Vector(
    name, description,
    [
      "payload-type": .number(payloadType), "sequence": .number(sequence),
      "captured-at-ms": .number(100_500), "ssrc": .hex(bigEndian(ssrc)),
      "picture-id": .number(pictureID), "tl0picidx": .number(tl0PicIdx),
      "keyidx": .number(keyIndex), "frame": .hex([0xD0, 0x02, 0x00]),
    ]
  ) { inputs in try packets(inputs, of: inputs.bytes("frame"), ssrc: ssrc).flatMap { $0 } }
}

private let severalPackets: KeyValuePairs<String, Value> = [
  "payload-type": .number(96), "sequence": .number(500), "captured-at-ms": .number(100_500),
  "ssrc": .hex(bigEndian(base + 1)), "picture-id": .number(100), "tl0picidx": .number(20),
  "keyidx": .number(3), "frame-bytes": .number(2500),
  "frame-byte-i": .text("7 * i modulo 256, for i from 0"),
]

private func packets(_ inputs: Inputs) throws -> [[UInt8]] {
  let frame = (0..<Int(try inputs.number("frame-bytes"))).map { UInt8($0 * 7 % 256) }
  return try packets(inputs, of: frame, ssrc: base + 1)
}

/// The packets of a frame of temporal layer 0, cut as section 13 says.
private func packets(_ inputs: Inputs, of frame: [UInt8], ssrc: UInt32) throws -> [[UInt8]] {
  let count = (frame.count + 1093) / 1094
  let size = (frame.count + count - 1) / count
  return try (0..<count).map { index in
    let header = RTPHeader(
      marker: index == count - 1, payloadType: UInt8(try inputs.number("payload-type")),
      sequence: UInt16(try inputs.number("sequence")) + UInt16(index),
      timestamp: RTPTime.timestamp(of: captured, clockRate: RTPTime.videoClockRate), ssrc: ssrc)
    let descriptor = VP8Descriptor(
      isNonReference: false, isFrameStart: index == 0,
      pictureID: UInt16(try inputs.number("picture-id")),
      tl0PicIdx: UInt8(try inputs.number("tl0picidx")), temporalLayer: 0, isLayerSync: false,
      keyIndex: UInt8(try inputs.number("keyidx")))
    var writer = Writer()
    writer.append(header.encoded)
    descriptor.write(to: &writer)
    writer.append(frame[index * size..<min((index + 1) * size, frame.count)])
    return writer.bytes
  }
}

@Test(arguments: ["rtp-audio", "rtp-audio-copy", "rtp-video", "rtp-screen"])
func packetsAreReadAsWritten(name: String) throws {
  let bytes = try Document.bytes(name)
  #expect(try RTPPacket(decoding: bytes).encoded() == bytes)
}

@Test func copiesAreReadAsWritten() throws {
  let payload = try RTPPacket(decoding: Document.bytes("rtp-audio-copy")).payload
  let redundant = try RedundantAudio(decoding: payload)
  #expect(redundant.copies.map(\.timestampOffset) == [1920])
  #expect(redundant.encoded() == Array(payload))
}

@Test(arguments: ["rtp-video", "rtp-screen"])
func descriptorsAreReadAsWritten(name: String) throws {
  let payload = try RTPPacket(decoding: Document.bytes(name)).payload
  var reader = Reader(payload)
  let descriptor = try VP8Descriptor(reading: &reader)
  var writer = Writer()
  descriptor.write(to: &writer)
  let data = reader.rest()
  #expect(writer.bytes + data == Array(payload))
  #expect(VP8FrameHeader.isKeyframe(data))
}

@Test(arguments: [1, 1094, 1095, 2188, 2189, 2500, 20_000])
func framesAreCutIntoEqualParts(count: Int) throws {
  var packetizer = VideoPacketizer(layer: 0, seed: 1)
  let frame = EncodedFrame(
    data: [UInt8](repeating: 7, count: count), isKeyframe: true, layer: 0, temporalLayer: 0,
    isReference: true, capturedAt: captured)
  let parts = (count + 1093) / 1094
  let size = (count + parts - 1) / parts
  let wanted = (0..<parts).map { min(($0 + 1) * size, count) - $0 * size + 6 }
  let packets = packetizer.packetize(frame)
  #expect(packets?.payloads.map(\.count) == wanted)
}

let rtcpVectors = Topic(
  name: "rtcp", section: 13, description: "RTCP packets.",
  vectors: [
    Vector(
      "rtcp-sender-report", "A sender report of the audio.",
      [
        "ssrc": .hex(bigEndian(base)), "time-ms": .number(100_500), "packets": .number(50),
        "octets": .number(4000),
      ]
    ) { _ in RTCPPacket.encode([.senderReport(senderReport)]) },
    Vector(
      "rtcp-receiver-report", "A receiver report with one block.",
      [
        "reporter": .hex(bigEndian(reporter)), "ssrc": .hex(bigEndian(base + 2)),
        "fraction-lost": .number(12), "lost": .number(3), "highest-sequence": .number(2100),
        "jitter": .number(90), "last-report-ms": .number(100_500), "delay-ms": .number(500),
      ]
    ) { _ in
      let block = ReportBlock(
        ssrc: base + 2, fractionLost: 12, cumulativeLost: 3, highestSequence: 2100, jitter: 90,
        lastReport: RTPTime.compact(senderReport.ntpTime), delaySinceLastReport: 0x8000)
      return RTCPPacket.encode([.receiverReport(ssrc: reporter, reports: [block])])
    },
    Vector(
      "rtcp-nack", "A request for three packets.",
      [
        "sender": .hex(bigEndian(reporter)), "media": .hex(bigEndian(base + 2)),
        "sequences": .list([.number(2001), .number(2002), .number(2004)]),
      ]
    ) { _ in
      RTCPPacket.encode([
        .nack(sender: reporter, media: base + 2, sequences: [2001, 2002, 2004])
      ])
    },
    Vector(
      "rtcp-pli", "A request for a keyframe.",
      ["sender": .hex(bigEndian(reporter)), "media": .hex(bigEndian(base + 2))]
    ) { _ in RTCPPacket.encode([.pictureLoss(sender: reporter, media: base + 2)]) },
  ])

private let senderReport = SenderReport(
  ssrc: base, ntpTime: RTPTime.ntp(of: captured),
  rtpTime: RTPTime.timestamp(of: captured, clockRate: RTPTime.audioClockRate), packets: 50,
  octets: 4000, reports: [])

@Test(arguments: ["rtcp-sender-report", "rtcp-receiver-report", "rtcp-nack", "rtcp-pli"])
func rtcpIsReadAsWritten(name: String) throws {
  let bytes = try Document.bytes(name)
  #expect(RTCPPacket.encode(try RTCPPacket.decode(bytes)) == bytes)
}
