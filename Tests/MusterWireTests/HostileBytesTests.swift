import MusterBase
import MusterWire
import Testing

/// A decoder of bytes from the network, with a generator of valid input.
private struct Decoder: Sendable, CustomTestStringConvertible {
  var name: String
  var valid: @Sendable (inout Samples) -> [UInt8]
  /// Whether the bytes decode to a valid value; most types are encoded again to check that.
  var accepts: @Sendable ([UInt8]) -> Bool
  /// Divides the number of rounds, for types that take long to decode.
  var cost = 1

  var testDescription: String { name }
}

private let decoders = [
  Decoder(
    name: "announce", valid: { $0.announcement().encoded() },
    accepts: { bytes in
      guard let value = try? Announcement(decoding: bytes) else { return false }
      return (try? Announcement(decoding: value.encoded())) == value
    }),
  Decoder(
    name: "challenge", valid: { $0.challenge().encoded() },
    accepts: { bytes in
      guard let value = try? Challenge(decoding: bytes) else { return false }
      return value.encoded() == bytes
    }),
  Decoder(
    name: "entry", valid: { $0.entry().encoded() },
    accepts: { bytes in
      guard let value = try? Entry(decoding: bytes) else { return false }
      return (try? Entry(decoding: value.encoded())) == value
    }),
  Decoder(
    name: "genesis", valid: { $0.genesis().encoded() },
    accepts: { bytes in
      guard let value = try? Genesis(decoding: bytes) else { return false }
      return (try? Genesis(decoding: value.encoded())) == value
    }),
  Decoder(
    name: "invite", valid: { Array($0.invite().url.utf8) },
    accepts: { bytes in
      guard let value = try? Invite(url: String(decoding: bytes, as: UTF8.self)) else {
        return false
      }
      return (try? Invite(url: value.url)) == value
    }, cost: 10),
  Decoder(
    name: "control",
    valid: { samples in Control.encode((0..<3).map { _ in samples.control() }) },
    accepts: { bytes in
      guard let value = try? Control.decode(bytes) else { return false }
      return (try? Control.decode(Control.encode(value))) == value
    }),
  Decoder(
    name: "path", valid: { $0.path().encoded() },
    accepts: { bytes in
      guard let value = try? PathMessage(decoding: bytes) else { return false }
      return value.encoded() == bytes
    }),
  Decoder(
    name: "feedback", valid: { $0.feedback().encoded() },
    accepts: { bytes in
      guard let value = try? CongestionFeedback(decoding: bytes) else { return false }
      return (try? CongestionFeedback(decoding: value.encoded())) == value
    }),
  Decoder(
    name: "rtp", valid: { $0.rtp().encoded() },
    accepts: { bytes in
      guard let value = try? RTPPacket(decoding: bytes) else { return false }
      guard let again = try? RTPPacket(decoding: value.encoded()) else { return false }
      return again.header == value.header && again.payload.elementsEqual(value.payload)
    }),
  Decoder(
    name: "redundant audio", valid: { $0.redundantAudio().encoded() },
    accepts: { bytes in
      guard let value = try? RedundantAudio(decoding: bytes[...]) else { return false }
      return value.encoded() == bytes
    }),
  Decoder(
    name: "rtcp",
    valid: { samples in RTCPPacket.encode((0..<2).map { _ in samples.rtcp() }) },
    accepts: { bytes in (try? RTCPPacket.decode(bytes)) != nil }),
  Decoder(
    name: "descriptor",
    valid: { samples in
      var writer = Writer()
      samples.descriptor().write(to: &writer)
      return writer.bytes
    },
    accepts: { bytes in
      var reader = Reader(bytes)
      guard let value = try? VP8Descriptor(reading: &reader) else { return false }
      return value.temporalLayer < 4 && value.pictureID ?? 0 <= 0x7FFF
    }),
  Decoder(
    name: "frame header",
    valid: { [0x10, 2, 0, 0x9D, 1, 0x2A, $0.u8(), $0.u8() | 1, $0.u8(), $0.u8() | 1] },
    accepts: { VP8FrameHeader.keyframeSize($0[...]) != nil }),
  Decoder(
    name: "kinds", valid: { [0x80 | $0.u8() & 0x3F, 200] },
    accepts: { DatagramKind(of: $0) != nil || PayloadKind(of: $0) != nil }),
]

/// Enough rounds to catch regressions; the fuzzers search for new defects.
private let rounds = 40_000

@Test(arguments: decoders)
private func randomBytesNeverTrap(decoder: Decoder) {
  let seed: UInt64 = 77
  var samples = Samples(seed: seed)
  for _ in 0..<rounds { _ = decoder.accepts(samples.bytes(upTo: 96)) }
}

@Test(arguments: decoders)
private func bytesThatWereTamperedWithNeverTrap(decoder: Decoder) {
  let seed: UInt64 = 78
  var samples = Samples(seed: seed)
  var accepted = 0
  for _ in 0..<rounds / 8 / decoder.cost {
    let valid = decoder.valid(&samples)
    #expect(decoder.accepts(valid), "seed \(seed): \(valid)")
    for _ in 0..<20 where decoder.accepts(samples.mutated(valid)) { accepted += 1 }
  }
  // If no mutation were accepted, the test would only exercise the first check of the decoder.
  #expect(accepted > 100)
}

@Test(arguments: decoders)
private func noPrefixTraps(decoder: Decoder) {
  var samples = Samples(seed: 79)
  for _ in 0..<200 / decoder.cost {
    let valid = decoder.valid(&samples)
    for count in 0..<valid.count { _ = decoder.accepts(Array(valid.prefix(count))) }
  }
}

@Test func readersThrowRatherThanReadPastTheEnd() throws {
  let bytes: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8, 9]
  var reader = Reader(bytes.dropFirst())
  #expect(try reader.u24() == 0x02_0304)
  #expect(try reader.u16() == 0x0506)
  #expect(throws: WireError.truncated) { try reader.u32() }
  #expect(throws: WireError.truncated) { try reader.slice(-1) }
  #expect(throws: WireError.truncated) { try reader.slice(.max) }
  #expect(throws: WireError.truncated) { try reader.bytes32() }
  #expect(throws: WireError.trailingBytes) { try reader.expectEnd() }
  #expect(try reader.array(3) == [7, 8, 9])
  #expect(throws: WireError.truncated) { try reader.u8() }
  try reader.expectEnd()
}

@Test(
  arguments: [
    ([3, 0x61, 0x62, 0x63], "abc"), ([0], ""), ([4, 0xF0, 0x9F, 0xA7, 0x91], "🧑"),
  ] as [([UInt8], String)])
func textIsReadAsUTF8(bytes: [UInt8], text: String) throws {
  var reader = Reader(bytes)
  #expect(try reader.text(limit: 8) == text)
  var writer = Writer()
  writer.text(text)
  #expect(writer.bytes == bytes)
}

@Test(
  arguments: [
    ([2, 0xC0, 0x80], .invalidValue), ([3, 0xED, 0xA0, 0x80], .invalidValue),
    ([1, 0xFF], .invalidValue), ([2, 0x61], .truncated), ([], .truncated),
    ([9, 1, 1, 1, 1, 1, 1, 1, 1, 1], .tooLong),
  ] as [([UInt8], WireError)])
func illFormedTextIsRefused(bytes: [UInt8], error: WireError) {
  var reader = Reader(bytes)
  #expect(throws: error) { try reader.text(limit: 8) }
}
