import MusterBase
import MusterWire
import Testing

/// A packet of another implementation, with the expected header and payload size.
private struct Expected: Sendable {
  var file: String
  var header: RTPHeader
  var payloadBytes: Int
}

/// The expected headers, which are those of the aiortc project's own tests.
private let rtpPackets = [
  Expected(
    file: "rtp",
    header: RTPHeader(
      marker: false, payloadType: 0, sequence: 15743, timestamp: 3_937_035_252,
      ssrc: 4_028_317_929), payloadBytes: 160),
  Expected(
    file: "rtp_dtmf",
    header: RTPHeader(
      marker: true, payloadType: 101, sequence: 24152, timestamp: 4_021_352_124,
      ssrc: 2_795_586_802), payloadBytes: 4),
  Expected(
    file: "rtp_only_padding",
    header: RTPHeader(
      marker: false, payloadType: 120, sequence: 27759, timestamp: 4_044_047_131,
      ssrc: 2_837_429_438), payloadBytes: 0),
  Expected(
    file: "rtp_only_padding_with_header_extensions",
    header: RTPHeader(
      marker: false, payloadType: 98, sequence: 22138, timestamp: 3_171_065_731,
      ssrc: 1_501_474_669), payloadBytes: 0),
  Expected(
    file: "rtp_with_csrc",
    header: RTPHeader(
      marker: false, payloadType: 0, sequence: 16082, timestamp: 144, ssrc: 1_606_227_614),
    payloadBytes: 160),
  Expected(
    file: "rtp_with_sdes_mid",
    header: RTPHeader(
      marker: true, payloadType: 111, sequence: 14156, timestamp: 0x4F1B_A1AD,
      ssrc: 0xF375_3F70), payloadBytes: 54),
]

@Test(arguments: rtpPackets.indices)
func rtpPacketsOfOthersAreRead(index: Int) throws {
  let expected = rtpPackets[index]
  let packet = try RTPPacket(decoding: Vectors.bytes("aiortc/\(expected.file).bin"))
  #expect(packet.header == expected.header, "\(expected.file)")
  #expect(packet.payload.count == expected.payloadBytes, "\(expected.file)")
}

/// The value of a field in Wireshark's output, such as ` Sequence number: 23617`.
private func field(_ name: String, in info: String) -> Substring? {
  info.split(separator: "\n").map { $0.drop { $0 == " " } }
    .first { $0.hasPrefix(name + ": ") }?.dropFirst(name.count + 2)
}

/// Parses the number in the last parentheses, or else the whole text.
private func number(_ text: Substring?) -> Int? {
  guard let text else { return nil }
  let inner = text.split(separator: "(").last?.split(separator: ")").first
  return inner.flatMap { Int($0) } ?? Int(text)
}

@Test(arguments: ["packet1", "packet3"])
func headersAreReadAsWiresharkReadsThem(name: String) throws {
  let packet = try RTPPacket(decoding: Vectors.bytes("mediasoup/\(name).raw"))
  let info = try Vectors.text("mediasoup/\(name).info")
  #expect(number(field("Payload type", in: info)) == Int(packet.header.payloadType))
  #expect(number(field("Sequence number", in: info)) == Int(packet.header.sequence))
  #expect(number(field("Timestamp", in: info)) == Int(packet.header.timestamp))
  #expect(
    number(field("Synchronization Source identifier", in: info)) == Int(packet.header.ssrc))
  #expect(info.contains("0... .... = Marker: False") && !packet.header.marker)
  // The extension of identifier 1 is the audio level, whose high bit is voice activity.
  let extensions = info.split(separator: "Identifier: 1\n").last ?? ""
  let data = try #require(field("Extension Data", in: String(extensions)))
  let level = try #require(Hex.decode(data)).first.map { $0 & 0x7F }
  #expect(packet.header.audioLevel == level)
  let payload = try #require(field("Payload", in: info)).prefix { $0.isHexDigit }
  #expect(Hex.encode(packet.payload).hasPrefix(payload))
}

@Test func paddingBeyondThePacketIsRefused() throws {
  let bytes = try Vectors.bytes("mediasoup/packet2.raw")
  #expect(number(field("Padding count", in: try Vectors.text("mediasoup/packet2.info"))) == 241)
  #expect(throws: WireError.invalidValue) { try RTPPacket(decoding: bytes) }
}

@Test func senderReportsOfOthersAreRead() throws {
  let block = ReportBlock(
    ssrc: 2_398_654_957, fractionLost: 0, cumulativeLost: 0, highestSequence: 246, jitter: 127,
    lastReport: 0, delaySinceLastReport: 0)
  let report = SenderReport(
    ssrc: 1_831_097_322, ntpTime: 16_016_567_581_311_369_308, rtpTime: 1_722_342_718, packets: 269,
    octets: 13557, reports: [block])
  #expect(try RTCPPacket.decode(Vectors.bytes("aiortc/rtcp_sr.bin")) == [.senderReport(report)])
}

@Test func receiverReportsOfOthersAreRead() throws {
  let block = ReportBlock(
    ssrc: 1_200_895_919, fractionLost: 0, cumulativeLost: 0, highestSequence: 630, jitter: 1906,
    lastReport: 0, delaySinceLastReport: 0)
  #expect(
    try RTCPPacket.decode(Vectors.bytes("aiortc/rtcp_rr.bin")) == [
      .receiverReport(ssrc: 817_267_719, reports: [block])
    ])
}

@Test func nacksOfOthersAreReadAndWrittenAlike() throws {
  let bytes = try Vectors.bytes("aiortc/rtcp_rtpfb.bin")
  let missing: [UInt16] = [
    12, 32, 39, 54, 76, 110, 123, 142, 183, 187, 223, 236, 271, 292,
  ]
  let nack = RTCPPacket.nack(sender: 2_336_520_123, media: 4_145_934_052, sequences: missing)
  #expect(try RTCPPacket.decode(bytes) == [nack])
  #expect(RTCPPacket.encode([nack]) == bytes)
}

@Test func pictureLossOfOthersIsReadAndWrittenAlike() throws {
  let bytes = try Vectors.bytes("aiortc/rtcp_psfb_pli.bin")
  let loss = RTCPPacket.pictureLoss(sender: 1_414_554_213, media: 587_284_409)
  #expect(try RTCPPacket.decode(bytes) == [loss])
  #expect(RTCPPacket.encode([loss]) == bytes)
}

@Test(arguments: ["bye", "bye_invalid", "bye_no_sources", "bye_padding", "sdes"])
func typesNotKnownHereAreSkipped(name: String) throws {
  let bytes = try Vectors.bytes("aiortc/rtcp_\(name).bin")
  #expect(try RTCPPacket.decode(bytes) == [])
  let loss = RTCPPacket.pictureLoss(sender: 1, media: 2)
  #expect(try RTCPPacket.decode(bytes + RTCPPacket.encode([loss])) == [loss])
}

@Test(arguments: [
  "sr_invalid", "rr_invalid", "rtpfb_invalid", "psfb_invalid", "sdes_source_truncated",
])
func brokenReportsAreRefused(name: String) throws {
  let bytes = try Vectors.bytes("aiortc/rtcp_\(name).bin")
  #expect(throws: WireError.truncated) { try RTCPPacket.decode(bytes) }
}

/// The bytes of a Go literal such as `[]byte("\x8f\xcd0…")`.
private func goBytes(_ text: String) throws -> [UInt8] {
  let start = try #require(text.firstIndex(of: "\""))
  let end = try #require(text.lastIndex(of: "\""))
  var rest = Array(text[text.index(after: start)..<end].utf8)[...]
  var bytes: [UInt8] = []
  while let first = rest.popFirst() {
    guard first == UInt8(ascii: "\\"), let escape = rest.popFirst() else {
      bytes.append(first)
      continue
    }
    if escape == UInt8(ascii: "x") {
      bytes += try #require(Hex.decode(String(decoding: rest.prefix(2), as: UTF8.self)))
      rest = rest.dropFirst(2)
    } else {
      try #require(escape == UInt8(ascii: "a"))
      bytes.append(7)
    }
  }
  return bytes
}

@Test func crashersOfAnotherDecoderAreHarmless() throws {
  for name in try Vectors.names(in: "pion-rtcp-fuzz", ending: "") where name != "LICENSE" {
    let bytes = try goBytes(Vectors.text("pion-rtcp-fuzz/\(name)"))
    #expect(bytes.count > 4 && bytes[1] >= 0xC8)
    _ = try? RTCPPacket.decode(bytes)
    _ = try? RTPPacket(decoding: bytes)
  }
}
