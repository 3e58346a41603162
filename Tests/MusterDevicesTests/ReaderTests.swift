import MusterBase
import MusterCodecs
import MusterDevices
import Testing

@Suite struct ReaderTests {
  private let scratch = Scratch()

  @Test func framesOfY4MAreReadInOrder() throws {
    let reader = try Y4MReader(path: scratch.write("a.y4m", TestFiles.y4m(count: 3)))
    #expect(reader.size == VideoSize(width: 96, height: 64))
    #expect(reader.rateNumerator == 50 && reader.rateDenominator == 1)
    for number: UInt32 in 0..<3 {
      let frame = try #require(try reader.next())
      #expect(TestPattern.read(frame)?.number == number)
    }
    #expect(try reader.next() == nil)
  }

  @Test func aTruncatedFrameIsNotReturned() throws {
    let whole = TestFiles.y4m(count: 2)
    let reader = try Y4MReader(path: scratch.write("cut.y4m", [UInt8](whole.dropLast(1))))
    #expect(try reader.next() != nil)
    #expect(try reader.next() == nil)
  }

  @Test(arguments: [
    "", "\n", "YUV4MPEG2\n", "YUV4MPEG2 W0 H0\n", "YUV4MPEG2 W-5 H10\n",
    "YUV4MPEG2 W99999999999999999999 H10\n", "YUV4MPEG2 W16384 H16384\n",
    "YUV4MPEG2 W64 H64 C444\n", "YUV4MPEG2 W64 H64 C420p10\n", "JUNK W64 H64\n",
  ])
  func absurdY4MIsRefused(header: String) {
    let path = scratch.write("bad.y4m", [UInt8](header.utf8))
    #expect(throws: DeviceError.self) { try Y4MReader(path: path) }
  }

  @Test(arguments: ["0:0", "1:0", "x", "9223372036854775807:1", "-30:1", "1:1000000"])
  func absurdRatesOfY4MMeanThirty(rate: String) throws {
    let path = scratch.write("rate.y4m", TestFiles.y4m(count: 1, rate: rate))
    let reader = try Y4MReader(path: path)
    #expect(reader.rateNumerator == 30 && reader.rateDenominator == 1)
    #expect(try reader.next() != nil)
  }

  @Test func framesOfIVFAreRead() throws {
    let reader = try IVFReader(path: TestFiles.path("media/bunny_320x180.ivf"))
    #expect(reader.size == VideoSize(width: 320, height: 180))
    var count = 0
    while let frame = try reader.next() {
      #expect(!frame.data.isEmpty)
      count += 1
    }
    #expect(count == 60)
  }

  @Test func damagedFilesNeverCrashAReader() {
    let seed: UInt64 = 77
    var random = PRNG(seed: seed)
    let ivf = [UInt8](TestFiles.read(TestFiles.path("media/bunny_320x180.ivf")).prefix(20_000))
    let y4m = TestFiles.y4m(count: 2, size: VideoSize(width: 48, height: 48))
    let wav = TestFiles.wav(bits: 16, audio: random.bytes(2000))
    for round in 0..<300 {
      var bytes = [ivf, y4m, wav][round % 3]
      for _ in 0..<random.below(8) {
        // Mostly in the header, which controls parsing.
        let index = random.below(random.chance(0.8) ? 60 : bytes.count)
        bytes[index] = UInt8(random.below(256))
      }
      if random.chance(0.5) { bytes.removeLast(random.below(bytes.count)) }
      let path = scratch.write("damaged", bytes)
      if let reader = try? IVFReader(path: path) { while (try? reader.next()) ?? nil != nil {} }
      if let reader = try? Y4MReader(path: path) { while (try? reader.next()) ?? nil != nil {} }
      if let reader = try? WAVReader(path: path) {
        while (try? reader.next(999))?.isEmpty == false {}
      }
    }
  }

  @Test func ivfOfAnotherCodecOrWithoutTimeIsRefused() {
    var header = [UInt8](TestFiles.read(TestFiles.path("media/bunny_320x180.ivf")).prefix(5000))
    header[11] = UInt8(ascii: "9")
    let otherCodec = scratch.write("vp9.ivf", header)
    #expect(throws: DeviceError.self) { try IVFReader(path: otherCodec) }
    header[11] = UInt8(ascii: "0")
    for index in 16..<20 { header[index] = 0 }
    let noTime = scratch.write("time.ivf", header)
    #expect(throws: DeviceError.self) { try IVFReader(path: noTime) }
  }

  /// Bits per sample, format tag, and the sample 0x4000 of 16 bits in that encoding.
  @Test(arguments: [
    (8, [1, 0xC0]), (16, [1, 0, 0x40]), (24, [1, 0, 0, 0x40]), (32, [1, 0, 0, 0, 0x40]),
    (32, [3, 0x00, 0x00, 0x00, 0x3F]), (64, [3, 0, 0, 0, 0, 0, 0, 0xE0, 0x3F]),
  ])
  func everyEncodingOfWAVIsRead(bits: Int, tagAndSample: [Int]) throws {
    let sample = tagAndSample.dropFirst().map { UInt8($0) }
    let audio = [[UInt8]](repeating: sample, count: 2 * 100).flatMap { $0 }
    let bytes = TestFiles.wav(
      tag: tagAndSample[0], channels: 2, rate: 44_100, bits: bits, audio: audio)
    let reader = try WAVReader(path: scratch.write("x.wav", bytes))
    #expect(reader.channels == 2 && reader.samplesPerSecond == 44_100)
    let pcm = try reader.next(1000)
    #expect(pcm.count == 100)
    #expect(pcm.allSatisfy { abs(Int($0) - 0x4000) <= 1 })
    #expect(try reader.next(10) == [])
  }

  @Test func channelsAreAveraged() throws {
    let audio = TestFiles.little(1000, 2) + TestFiles.little(3000, 2)
    let path = scratch.write("s.wav", TestFiles.wav(channels: 2, bits: 16, audio: audio))
    #expect(try WAVReader(path: path).next(10) == [2000])
  }

  @Test(arguments: [0, 0xFFFF_FFFF, 1_000_000])
  func aWrongLengthMeansToTheEnd(declared: Int) throws {
    let bytes = TestFiles.wav(bits: 16, audio: [1, 0, 2, 0, 3, 0], declared: declared)
    #expect(try WAVReader(path: scratch.write("l.wav", bytes)).next(10) == [1, 2, 3])
  }

  @Test func otherChunksAreSkipped() throws {
    let list = [UInt8]("LIST".utf8) + TestFiles.little(3, 4) + [1, 2, 3, 0]
    let bytes = TestFiles.wav(bits: 16, audio: [7, 0], before: list)
    #expect(try WAVReader(path: scratch.write("c.wav", bytes)).next(10) == [7])
  }

  @Test(arguments: [0, 65, 60_000])
  func absurdChannelsAreRefused(channels: Int) {
    let path = scratch.write(
      "n.wav", TestFiles.wav(channels: channels, bits: 16, audio: [0, 0]))
    #expect(throws: DeviceError.self) { try WAVReader(path: path) }
  }
}
