import MusterBase
import MusterCodecs
import Testing

@Suite struct VP8DecoderTests {
  @Test func md5IsThatOfItsStandard() {
    #expect(MD5.hex([]) == "d41d8cd98f00b204e9800998ecf8427e")
    #expect(MD5.hex([UInt8]("abc".utf8)) == "900150983cd24fb0d6963f7d28e17f72")
    #expect(
      MD5.hex([UInt8](repeating: 0x61, count: 64)) == "014842d480b571495a4a0363793f7367")
  }

  @Test(arguments: [
    "vp80-00-comprehensive-001", "vp80-00-comprehensive-003", "vp80-00-comprehensive-004",
    "vp80-00-comprehensive-006", "vp80-00-comprehensive-016", "vp80-00-comprehensive-017",
    "vp80-01-intra-1416", "vp80-03-segmentation-03",
  ])
  func publishedVectorsDecodeToPublishedFrames(name: String) throws {
    let listing = String(
      decoding: TestFiles.bytes("vp8/\(name).ivf.md5"), as: UTF8.self)
    let wanted = listing.split(separator: "\n").map { String($0.prefix(32)) }
    let decoder = try VP8Decoder()
    let frames = try TestFiles.ivfFrames("vp8/\(name).ivf").compactMap {
      try decoder.decode($0)
    }
    try #require(!wanted.isEmpty && frames.count >= wanted.count)
    for (index, sum) in wanted.enumerated() {
      #expect(MD5.hex(frames[index].packedBytes()) == sum, "picture \(index + 1) of \(name)")
    }
  }

  @Test func nothingIsShownBeforeAKeyframe() throws {
    let frames = TestFiles.ivfFrames("media/bunny_320x180.ivf")
    let decoder = try VP8Decoder()
    #expect(throws: CodecError.self) { try decoder.decode(frames[1]) }
    #expect(throws: CodecError.self) { try decoder.decode([]) }
    #expect(try decoder.decode(frames[0]) != nil)
  }

  @Test func anAbsurdSizeIsRefusedBeforeMemoryIsTaken() throws {
    var keyframe = TestFiles.ivfFrames("media/bunny_320x180.ivf")[0]
    #expect(VP8Decoder.keyframeSize(keyframe) == VideoSize(width: 320, height: 180))
    keyframe[6] = 0xFF
    keyframe[7] = 0x3F
    keyframe[8] = 0xFF
    keyframe[9] = 0x3F
    let decoder = try VP8Decoder()
    #expect(throws: CodecError.self) { try decoder.decode(keyframe) }
  }

  @Test func junkNeverCrashesTheDecoder() throws {
    let seed: UInt64 = 20
    var random = PRNG(seed: seed)
    let frames = TestFiles.ivfFrames("media/bunny_320x180.ivf")
    let decoder = try VP8Decoder()
    for _ in 0..<300 {
      var frame = frames[random.below(frames.count)]
      // The size is kept; otherwise most of the time would go into clearing memory.
      for _ in 0..<(1 + random.below(20)) {
        let position = random.below(frame.count)
        if !(3..<10).contains(position) { frame[position] = UInt8(random.below(256)) }
      }
      if random.chance(0.3) { frame.removeLast(random.below(frame.count)) }
      if random.chance(0.1) { frame = random.bytes(1 + random.below(2000)) }
      _ = try? decoder.decode(frame)
    }
    #expect(try decoder.decode(frames[0]) != nil, "seed \(seed)")
  }
}
