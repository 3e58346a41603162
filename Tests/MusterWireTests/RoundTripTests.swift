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
    // No amplification: a forged source address must not make a node send more than it received.
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

@Test func audioWithCopiesComesBack() throws {
  var samples = Samples(seed: 13)
  for _ in 0..<rounds {
    let audio = samples.redundantAudio()
    let decoded = try RedundantAudio(decoding: audio.encoded()[...])
    #expect(decoded.primary.elementsEqual(audio.primary))
    #expect(decoded.copies.map(\.timestampOffset) == audio.copies.map(\.timestampOffset))
    #expect(decoded.copies.map { Array($0.payload) } == audio.copies.map { Array($0.payload) })
  }
}

@Test func malformedCopiesAreRefused() {
  let cases: [(bytes: [UInt8], error: WireError)] = [
    ([], .truncated), ([0xEF, 0, 0], .truncated), ([0xEF, 0, 0, 0], .truncated),
    ([0xEF, 0, 0, 1, 0x6F], .truncated), ([0x6E, 1], .invalidValue),
    ([0xEE, 0, 0, 0, 0x6F], .invalidValue),
    (Array(repeating: [0xEF, 0, 0, 0], count: 4).flatMap(\.self) + [0x6F], .tooLong),
  ]
  for (bytes, error) in cases {
    #expect(throws: error) { try RedundantAudio(decoding: bytes[...]) }
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

@Test func congestionFeedbackComesBack() throws {
  var samples = Samples(seed: 12)
  for _ in 0..<rounds / 10 {
    let feedback = samples.feedback()
    let bytes = feedback.encoded()
    #expect(try CongestionFeedback(decoding: bytes) == feedback)
    #expect(PayloadKind(of: bytes) == .feedback)
    // It fits into a datagram that a relay carries.
    #expect(bytes.count <= 1161 - 29)
  }
}

@Test func agesOfArrivalsEndAtTwoSeconds() {
  typealias Arrival = CongestionFeedback.Arrival
  #expect(Arrival.missing.age == nil && !Arrival.missing.isReceived)
  #expect(Arrival(age: 0).age == .zero)
  #expect(Arrival(age: 400).age == .milliseconds(100))
  #expect(Arrival(age: 0x1FFD).age == .microseconds(2_047_250))
  for old in [0x1FFE, 0x1FFF, 0x2000, .max] as [UInt32] {
    #expect(Arrival(age: old).age == nil && Arrival(age: old).isReceived)
  }
}

@Test func malformedFeedbackIsRefused() throws {
  let one = [UInt8](
    [4, 1, 2, 3, 4] + [UInt8](repeating: 0xFF, count: 8) + [0, 0, 0, 9, 0x80, 0])
  #expect(try CongestionFeedback(decoding: one).arrivals.count == 1)
  // No packet, half a block, a number beyond 2^64 - 1, and more than the limit.
  for (bytes, error) in [
    (Array(one.dropLast(2)), .truncated), (Array(one.dropLast()), .truncated),
    (one + [0, 0], .invalidValue),
    (one + [UInt8](repeating: 0, count: 2 * CongestionFeedback.limit), .tooLong),
    ([3] + one.dropFirst(), .invalidValue),
  ] as [([UInt8], WireError)] {
    #expect(throws: error) { try CongestionFeedback(decoding: bytes) }
  }
  // The bits for ECN, and the age of what has not arrived, are ignored.
  let other = one.dropLast(2) + [0x6A, 0xAA]
  #expect(try CongestionFeedback(decoding: Array(other)).arrivals == [.missing])
  let marked = one.dropLast(2) + [0xE0, 0x04]
  #expect(
    try CongestionFeedback(decoding: Array(marked)).arrivals.map(\.age) == [.milliseconds(1)])
}

@Test func rtpAndRTCPAreDistinguished() {
  var samples = Samples(seed: 11)
  let types = (96...107).map { UInt8($0) } + [PayloadType.opus, PayloadType.redundantAudio]
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
  #expect(PayloadKind(of: [5]) == nil && PayloadKind(of: [0xC0, 0]) == nil)
}
