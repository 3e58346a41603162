import MusterBase
import MusterWire
import Testing

/// The bytes that a payload writes; checks that it does not write beyond `count`.
private func written(_ payload: OutgoingPayload) -> [UInt8] {
  var bytes = [UInt8](repeating: 0xA5, count: payload.count + 4)
  bytes.withUnsafeMutableBytes {
    payload.write(into: UnsafeMutableRawBufferPointer(rebasing: $0[..<payload.count]))
  }
  #expect(bytes.suffix(4) == [0xA5, 0xA5, 0xA5, 0xA5])
  return bytes.dropLast(4)
}

private func header(audioLevel: UInt8?) -> RTPHeader {
  RTPHeader(
    marker: true, payloadType: PayloadType.opus, sequence: 0x1234, timestamp: 0x5678_9ABC,
    ssrc: 0xDEF0_1234, audioLevel: audioLevel)
}

@Test(
  arguments: [
    (nil, [0x80, 0xEF, 0x12, 0x34, 0x56, 0x78, 0x9A, 0xBC, 0xDE, 0xF0, 0x12, 0x34]),
    (
      30,
      [
        0x90, 0xEF, 0x12, 0x34, 0x56, 0x78, 0x9A, 0xBC, 0xDE, 0xF0, 0x12, 0x34, 0xBE, 0xDE, 0, 1,
        0x10, 30, 0, 0,
      ]
    ),
  ] as [(UInt8?, [UInt8])])
func anRTPHeaderIsWrittenAsItIsEncoded(audioLevel: UInt8?, expected: [UInt8]) {
  let header = header(audioLevel: audioLevel)
  #expect(header.encoded == expected)
  #expect(header.encodedBytes == expected.count)
  #expect(OutgoingPayload.Header.rtp(header).count == expected.count)
  #expect(written(OutgoingPayload(.rtp(header), [])) == expected)
  let body: [UInt8] = [9, 8, 7, 6]
  let payload = OutgoingPayload(.rtp(header), body[1...2])
  #expect(payload.count == expected.count + 2)
  #expect(written(payload) == expected + [8, 7])
  #expect(written(payload) == RTPPacket(header: header, payload: body[1...2]).encoded())
}

/// The buffer is a part of a datagram, at any offset.
@Test(arguments: 0..<9)
func anRTPHeaderIsWrittenAtAnyOffset(offset: Int) {
  let header = header(audioLevel: 127)
  var bytes = [UInt8](repeating: 0xA5, count: offset + header.encodedBytes)
  bytes.withUnsafeMutableBytes {
    header.write(into: UnsafeMutableRawBufferPointer(rebasing: $0[offset...]))
  }
  #expect(bytes == [UInt8](repeating: 0xA5, count: offset) + header.encoded)
}

@Test func bytesPrecedeTheBody() {
  let body: [UInt8] = [1, 2, 3, 4]
  let payload = OutgoingPayload(.bytes([7, 8, 9]), body[1...])
  #expect(OutgoingPayload.Header.bytes([7, 8, 9]).count == 3)
  #expect(payload.count == 6)
  #expect(written(payload) == [7, 8, 9, 2, 3, 4])
  #expect(written(OutgoingPayload(.bytes([7]), [])) == [7])
}

@Test func aPayloadMayHaveNoHeader() {
  let payload = OutgoingPayload([5, 6])
  #expect(payload == OutgoingPayload(.none, [5, 6]))
  #expect(payload.header.count == 0 && payload.count == 2)
  #expect(written(payload) == [5, 6])
  #expect(OutgoingPayload([]).count == 0)
  #expect(written(OutgoingPayload([])).isEmpty)
}

@Test func aPayloadHasTheClassOfItsContent() {
  func media(_ type: UInt8) -> OutgoingPayload {
    OutgoingPayload(
      .rtp(RTPHeader(marker: false, payloadType: type, sequence: 1, timestamp: 2, ssrc: 3)), [9])
  }
  let audio = [PayloadType.opus, PayloadType.redundantAudio].map(media)
  #expect(audio.map(\.serviceClass) == [.audio, .audio])
  let video = (PayloadType.videoBase..<PayloadType.videoBase + 6).map(media)
  #expect(video.allSatisfy { $0.serviceClass == .video })
  // Padding and a keepalive, a control message, a report, and an envelope with whatever inside.
  let keepalive = PayloadKind.keepaliveByte
  let others: [[UInt8]] = [
    [keepalive, 0], [keepalive], [PayloadKind.controlByte, 1], [PayloadKind.feedbackByte, 1], [],
  ]
  #expect(
    others.map { OutgoingPayload($0).serviceClass } == [
      .video, .standard, .standard, .standard, .standard,
    ])
  #expect(OutgoingPayload(.bytes([1]), [0x80, 111]).serviceClass == .standard)
}
