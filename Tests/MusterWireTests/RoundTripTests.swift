import MusterBase
import MusterWire
import Testing

private let rounds = 5_000

@Test func announcesComeBackAsTheyWere() throws {
  var samples = Samples(seed: 1)
  for _ in 0..<rounds {
    let announcement = samples.announcement()
    let bytes = announcement.encoded()
    #expect(try Announcement(decoding: bytes) == announcement)
    #expect(try Announcement(decoding: bytes).encoded() == bytes)
    #expect(bytes.count + Announcement.signatureBytes <= Limits.datagramBytes)
  }
}

@Test func challengesComeBackAndAreSmallerThanAnyAnnounce() throws {
  var samples = Samples(seed: 2)
  for _ in 0..<rounds {
    let challenge = samples.challenge()
    #expect(try Challenge(decoding: challenge.encoded()) == challenge)
    // Who forges a source address must not make a node send more than was sent to it.
    let announcement = samples.announcement().encoded().count + Announcement.signatureBytes
    #expect(challenge.encoded().count < announcement)
  }
}

@Test func controlMessagesComeBackInOrder() throws {
  var samples = Samples(seed: 6)
  for _ in 0..<rounds {
    let messages = (0..<samples.random.below(5)).map { _ in samples.control() }
    let bytes = Control.encode(messages)
    #expect(try Control.decode(bytes) == messages)
    #expect(PayloadKind(of: bytes) == .control)
  }
}

@Test func unknownControlMessagesAreSkippedUnlessCritical() throws {
  let ping = Control.encode([.ping(7)])
  let optional: [UInt8] = [0x7E, 0, 2, 1, 2]
  let critical: [UInt8] = [0xFE, 0, 0]
  #expect(try Control.decode(ping + optional) == [.ping(7)])
  #expect(try Control.decode(ping.prefix(1) + optional + ping.dropFirst()) == [.ping(7)])
  #expect(throws: WireError.unsupported) { try Control.decode(ping + critical) }
  #expect(throws: WireError.trailingBytes) {
    try Control.decode([1, 4, 0, 9] + [UInt8](repeating: 0, count: 9))
  }
}

@Test func pathMessagesComeBack() throws {
  var samples = Samples(seed: 7)
  for _ in 0..<100 {
    let message = samples.path()
    #expect(try PathMessage(decoding: message.encoded()) == message)
    #expect(PayloadKind(of: message.encoded()) == .path)
  }
  #expect(throws: WireError.trailingBytes) { try PathMessage(decoding: [2, 2, 0]) }
  #expect(throws: WireError.unsupported) { try PathMessage(decoding: [2, 3]) }
}

@Test func rtpPacketsComeBack() throws {
  var samples = Samples(seed: 8)
  for _ in 0..<rounds {
    let packet = samples.rtp()
    let bytes = packet.encoded()
    let decoded = try RTPPacket(decoding: bytes)
    #expect(decoded.header == packet.header && Array(decoded.payload) == Array(packet.payload))
    #expect(decoded.encoded() == bytes)
  }
}

@Test func descriptorsComeBackAndLeaveTheFrame() throws {
  var samples = Samples(seed: 9)
  for _ in 0..<rounds {
    let descriptor = samples.descriptor()
    var writer = Writer()
    descriptor.write(to: &writer)
    #expect(writer.bytes.count == VP8Descriptor.encodedBytes)
    writer.append([0xAA, 0xBB])
    var reader = Reader(writer.bytes)
    #expect(try VP8Descriptor(reading: &reader) == descriptor)
    #expect(Array(reader.rest()) == [0xAA, 0xBB])
  }
}

@Test func rtcpCompoundsComeBack() throws {
  var samples = Samples(seed: 10)
  for _ in 0..<rounds {
    let packets = (0..<(1 + samples.random.below(3))).map { _ in samples.rtcp() }
    let bytes = RTCPPacket.encode(packets)
    #expect(try RTCPPacket.decode(bytes) == packets)
    #expect(PayloadKind(of: bytes) == .rtcp)
  }
}

@Test func mediaIsToldFromItsReports() {
  var samples = Samples(seed: 11)
  let types = (96...107).map { UInt8($0) } + [PayloadType.opus]
  for type in types {
    var packet = samples.rtp()
    packet.header.payloadType = type
    for marker in [false, true] {
      packet.header.marker = marker
      #expect(PayloadKind(of: packet.encoded()) == .rtp)
    }
  }
}

@Test func theFirstByteTellsWhatADatagramIs() {
  for byte in UInt8.min...UInt8.max {
    let known = DatagramKind.allCases.filter { $0.rawValue == byte }
    #expect(DatagramKind(of: [byte, 1, 2]) == known.first)
  }
  #expect(DatagramKind(of: []) == nil)
  #expect(PayloadKind(of: []) == .keepalive)
  #expect(PayloadKind(of: [0, 9]) == .keepalive)
  #expect(PayloadKind(of: [0x80]) == nil)
  #expect(PayloadKind(of: [4]) == nil && PayloadKind(of: [0xC0, 0]) == nil)
}
