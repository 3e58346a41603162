import MusterBase
import MusterWire
import Testing

private func descriptor(_ bytes: [UInt8]) throws -> (VP8Descriptor, left: Int) {
  var reader = Reader(bytes)
  return (try VP8Descriptor(reading: &reader), reader.remaining)
}

/// RFC 7741 4.6.1: a key frame in one packet, PictureID 17 in one byte.
@Test func aKeyFrameInOnePacket() throws {
  let (read, left) = try descriptor([0x90, 0x80, 0x11, 0xAA])
  #expect(read.isFrameStart && !read.isNonReference && read.pictureID == 17)
  #expect(read.tl0PicIdx == nil && read.keyIndex == nil && left == 1)
}

/// RFC 7741 4.6.2: a non-reference frame without PictureID; 4.6.3: a second fragment.
@Test func framesWithoutPictureIDAndSecondFragments() throws {
  let (single, left) = try descriptor([0x30, 0xAA])
  #expect(single.isNonReference && single.isFrameStart && single.pictureID == nil && left == 1)
  let (second, _) = try descriptor([0x80, 0x80, 0x11, 0xAA])
  #expect(!second.isFrameStart && second.pictureID == 17)
}

/// RFC 7741 4.6.5: PictureID 4711 in two bytes.
@Test func aLongPictureID() throws {
  let (read, left) = try descriptor([0x90, 0x80, 0x92, 0x67, 0xAA])
  #expect(read.pictureID == 4711 && left == 1)
}

/// RFC 7741 4.2: the start of a later partition is not the start of the frame.
@Test(arguments: UInt8(0)..<16)
func onlyTheFirstPartitionStartsAFrame(low: UInt8) throws {
  let (read, _) = try descriptor([0x10 | low])
  #expect(read.isFrameStart == (low & 7 == 0))
}

/// RFC 7741 4.2: each of the bits I, L, T and K adds its extension byte or bytes.
@Test(arguments: 0..<16)
func extensionBytesFollowTheirBits(bits: Int) throws {
  let present = UInt8(bits << 4)
  var bytes: [UInt8] = [0x80, present]
  if present & 0x80 != 0 { bytes += [0xFF, 0xFE] }
  if present & 0x40 != 0 { bytes += [0x2A] }
  if present & 0x30 != 0 { bytes += [0xB5] }
  let (read, left) = try descriptor(bytes + [1, 2, 3])
  #expect(left == 3)
  #expect(read.pictureID == (present & 0x80 != 0 ? 0x7FFE : nil))
  #expect(read.tl0PicIdx == (present & 0x40 != 0 ? 0x2A : nil))
  #expect(read.temporalLayer == (present & 0x20 != 0 ? 2 : 0))
  #expect(read.isLayerSync == (present & 0x20 != 0))
  #expect(read.keyIndex == (present & 0x10 != 0 ? 0x15 : nil))
  for count in 0..<bytes.count {
    #expect(throws: WireError.truncated) { try descriptor(Array(bytes.prefix(count))) }
  }
}

/// RFC 6386 9.1: frame tag, start code 9d 01 2a, two times 14 bits of size and 2 of scale.
@Test func keyFramesTellTheirSize() throws {
  let head: [UInt8] = [0x10, 0x02, 0x00, 0x9D, 0x01, 0x2A, 0x80, 0x02, 0x68, 0x41, 0xFF]
  let size = try #require(VP8FrameHeader.keyframeSize(head[...]))
  #expect(size.width == 640 && size.height == 360)
  #expect(VP8FrameHeader.isKeyframe(head))
  var inter = head
  inter[0] |= 1
  #expect(!VP8FrameHeader.isKeyframe(inter) && VP8FrameHeader.keyframeSize(inter[...]) == nil)
  for index in 3...5 {
    var broken = head
    broken[index] ^= 1
    #expect(VP8FrameHeader.keyframeSize(broken[...]) == nil)
  }
  for count in 0..<10 { #expect(VP8FrameHeader.keyframeSize(head.prefix(count)) == nil) }
  #expect(VP8FrameHeader.keyframeSize(([0, 0, 0] + head).dropFirst(3))?.width == 640)
  #expect(!VP8FrameHeader.isKeyframe([]))
}

/// RFC 8285 4.2 and 4.3: padding between elements, an element to skip, and the stop of id 15.
@Test(
  arguments: [
    ([0x10, 0xFF, 0, 0], 127), ([0, 0, 0x10, 0x2A], 42), ([0x21, 1, 2, 0x10, 0x2A, 0, 0, 0], 42),
    ([0xF0, 0x10, 0x2A, 0], nil), ([0x20, 9, 0, 0], nil), ([0, 0, 0, 0], nil), ([], nil),
  ] as [([UInt8], UInt8?)])
func audioLevelsAreFoundAmongExtensions(block: [UInt8], level: UInt8?) throws {
  let fixed: [UInt8] = [0x90, 0x6F, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3]
  let head = fixed + [0xBE, 0xDE, 0, UInt8(block.count / 4)] + block
  let packet = try RTPPacket(decoding: head + [9])
  #expect(packet.header.audioLevel == level && Array(packet.payload) == [9])
}

@Test(
  arguments: [
    [], [0x80], [0x80, 0x6F, 0, 1, 0, 0, 0, 2, 0, 0, 0],
    [0x81, 0x6F, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3],
    [0x90, 0x6F, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0xBE, 0xDE, 0, 1],
    [0x90, 0x6F, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0xBE, 0xDE, 0, 1, 0x13, 1, 2, 3],
  ] as [[UInt8]])
func truncatedPacketsAreRefused(bytes: [UInt8]) {
  #expect(throws: WireError.truncated) { try RTPPacket(decoding: bytes) }
}

@Test(arguments: [0x00, 0x40, 0xC0] as [UInt8])
func otherVersionsAreRefused(first: UInt8) {
  let bytes = [first] + [UInt8](repeating: 0, count: 20)
  #expect(throws: WireError.unsupported) { try RTPPacket(decoding: bytes) }
  #expect(throws: WireError.unsupported) { try RTCPPacket.decode(bytes) }
}

/// RFC 3550 6.4.1: cumulative loss is 24 bits of two's complement.
@Test(
  arguments: [
    (0, 0), (-1, -1), (0x7F_FFFF, 0x7F_FFFF), (-0x80_0000, -0x80_0000), (.max, 0x7F_FFFF),
    (.min, -0x80_0000),
  ] as [(Int32, Int32)])
func lossIsClampedToTwentyFourBits(lost: Int32, reported: Int32) throws {
  var samples = Samples(seed: 1)
  var block = samples.reportBlock()
  block.cumulativeLost = lost
  let packets = try RTCPPacket.decode(
    RTCPPacket.encode([.receiverReport(ssrc: 1, reports: [block])]))
  block.cumulativeLost = reported
  #expect(packets == [.receiverReport(ssrc: 1, reports: [block])])
}

/// RFC 4585 6.2.1: seventeen in a row take one entry, one more takes another; wraps are ordinary.
@Test func runsOfLossAreListedDensely() throws {
  for (count, words) in [(1, 1), (17, 1), (18, 2), (34, 2), (35, 3)] {
    let sequences = (0..<count).map { UInt16(65530) &+ UInt16($0) }
    let bytes = RTCPPacket.encode([.nack(sender: 1, media: 2, sequences: sequences)])
    #expect(bytes.count == 12 + 4 * words)
    #expect(
      try RTCPPacket.decode(bytes) == [.nack(sender: 1, media: 2, sequences: sequences)])
  }
}

@Test func listsOfLossAreBounded() {
  let words = Limits.nackEntries + 1
  let head: [UInt8] = [0x81, 205, UInt8((words + 2) >> 8), UInt8((words + 2) & 255)]
  let bytes = head + [UInt8](repeating: 0, count: 8 + 4 * words)
  #expect(throws: WireError.tooLong) { try RTCPPacket.decode(bytes) }
}
