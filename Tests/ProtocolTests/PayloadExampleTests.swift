import MusterBase
import MusterChannel
import MusterCrypto
import MusterMedia
import MusterWire
import Testing

@Test func controlPayloadsAreAsWritten() throws {
  let messages: [Control] = [
    .subscribe(Subscription(.camera, RequestedResolution(width: 640, height: 360))),
    .ping(0x3132_3334_3536_3738),
  ]
  try expect("control-subscribe-ping", is: Control.encode(messages))
  #expect(try Control.decode(try Document.bytes("control-subscribe-ping")) == messages)
  let receipt = Control.entriesReceived([0x0102_0304_0506_0708, 0x1112_1314_1516_1718])
  try expect("control-received", is: Control.encode([receipt]))
  let seen = Control.seen(Address(host: .v4(0xC000_0207), port: 40_000))
  try expect("control-seen", is: Control.encode([seen]))
}

/// Of the examples: the base of Anna's SSRCs, and when both packets were captured.
private let base: UInt32 = 0x5A5B_5C00
private let captured = Instant(nanoseconds: 100_500_000_000)
private let reporter: UInt32 = 0x6A6B_6C00

@Test func soundIsAsWritten() throws {
  var sender = RTPSender(
    payloadType: PayloadType.opus, ssrc: base, firstSequence: 1000, historyCapacity: 1)
  var timestamps = AudioTimestamps()
  let payload: [UInt8] = [0x78, 0xFF, 0xFE]
  let header = sender.send(
    payload, marker: false, timestamp: timestamps.next(capturedAt: captured), audioLevel: 30,
    at: captured)
  try expect("rtp-audio", is: header.encoded + payload)
  let packet = try RTPPacket(decoding: try Document.bytes("rtp-audio"))
  #expect(packet.header == header)
  #expect(Array(packet.payload) == payload)
}

@Test func picturesAreAsWritten() throws {
  let descriptor = VP8Descriptor(
    isNonReference: false, isFrameStart: true, pictureID: 4660, tl0PicIdx: 86, temporalLayer: 0,
    isLayerSync: false, keyIndex: 9)
  let header = RTPHeader(
    marker: true, payloadType: PayloadType.video(.camera, layer: 1), sequence: 2000,
    timestamp: RTPTime.timestamp(of: captured, clockRate: RTPTime.videoClockRate),
    ssrc: SSRCPlan(base: base).video(.camera, layer: 1))
  var writer = Writer()
  header.write(to: &writer)
  descriptor.write(to: &writer)
  writer.append([0xD0, 0x02, 0x00])
  try expect("rtp-video", is: writer.bytes)

  let packet = try RTPPacket(decoding: try Document.bytes("rtp-video"))
  #expect(packet.header == header)
  var reader = Reader(packet.payload)
  let read = try VP8Descriptor(reading: &reader)
  let data = reader.rest()
  #expect(read == descriptor)
  #expect(VP8FrameHeader.isKeyframe(data))
}

@Test func framesOfTheScreenAreAsWritten() throws {
  let header = RTPHeader(
    marker: true, payloadType: PayloadType.video(.screen, layer: 0), sequence: 3000,
    timestamp: RTPTime.timestamp(of: captured, clockRate: RTPTime.videoClockRate),
    ssrc: SSRCPlan(base: base).video(.screen, layer: 0))
  let packet = try RTPPacket(decoding: try Document.bytes("rtp-screen"))
  #expect(packet.header == header)
  var reader = Reader(packet.payload)
  #expect(try VP8Descriptor(reading: &reader).pictureID == 7)
}

/// Section 13 says how a picture is cut.
@Test(arguments: [1, 1094, 1095, 2188, 2189, 20_000])
func picturesAreCutIntoEqualParts(count: Int) throws {
  var packetizer = VideoPacketizer(layer: 0, seed: 1)
  let frame = EncodedFrame(
    data: [UInt8](repeating: 7, count: count), isKeyframe: true, layer: 0, temporalLayer: 0,
    isReference: true, capturedAt: captured)
  let parts = (count + 1093) / 1094
  let wanted = (0..<parts).map { ($0 + 1) * count / parts - $0 * count / parts + 6 }
  let packets = packetizer.packetize(frame)
  #expect(packets?.payloads.map(\.count) == wanted)
}

@Test func reportsAndRequestsAreAsWritten() throws {
  let sent = SenderReport(
    ssrc: base, ntpTime: RTPTime.ntp(of: captured),
    rtpTime: RTPTime.timestamp(of: captured, clockRate: RTPTime.audioClockRate), packets: 50,
    octets: 4000, reports: [])
  let block = ReportBlock(
    ssrc: base + 2, fractionLost: 12, cumulativeLost: 3, highestSequence: 2100, jitter: 90,
    lastReport: RTPTime.compact(sent.ntpTime), delaySinceLastReport: 0x8000)
  let examples: [(String, RTCPPacket)] = [
    ("rtcp-sender-report", .senderReport(sent)),
    ("rtcp-receiver-report", .receiverReport(ssrc: reporter, reports: [block])),
    ("rtcp-nack", .nack(sender: reporter, media: base + 2, sequences: [2001, 2002, 2004])),
    ("rtcp-picture-loss", .pictureLoss(sender: reporter, media: base + 2)),
  ]
  for (name, packet) in examples {
    try expect(name, is: RTCPPacket.encode([packet]))
    #expect(try RTCPPacket.decode(try Document.bytes(name)) == [packet])
  }
}
