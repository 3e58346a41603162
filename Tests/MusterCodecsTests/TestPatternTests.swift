import MusterBase
import MusterCodecs
import Testing

@Suite struct TestPatternTests {
  private func time(_ index: Int) -> Instant {
    // Multiples of 100 us, the pattern's resolution.
    Instant(nanoseconds: 987_654_321_000_000 / 100_000 * 100_000 + Int64(index) * 33_300_000)
  }

  @Test(arguments: ["48x48", "320x180", "284x160", "640x360", "1280x720", "175x143", "90x1000"])
  func aDrawnNumberIsReadAgain(text: String) throws {
    let size = try #require(VideoSize(text))
    let frame = I420Frame(size: size)
    for number: UInt32 in [0, 1, 2, 255, 65_535, 1_000_000, .max] {
      let instant = time(Int(number % 1000))
      TestPattern.draw(
        number: number, capturedAt: instant, into: frame, flash: number % 2 == 0, hue: -3)
      let result = try #require(TestPattern.read(frame))
      #expect(result.number == number)
      #expect(result.capturedAt == instant)
    }
  }

  @Test(arguments: [("320x180", 150), ("284x160", 150), ("640x360", 500)])
  func itSurvivesVP8(text: String, kilobits: Int) throws {
    let size = try #require(VideoSize(text))
    let encoder = try VP8Encoder(size: size, framesPerSecond: 30, kilobitsPerSecond: kilobits)
    let decoder = try VP8Decoder()
    let frame = I420Frame(size: size)
    var delivered = 0
    for index in 0..<240 {
      let instant = time(index)
      TestPattern.draw(
        number: UInt32(index), capturedAt: instant, into: frame,
        flash: TestPattern.flashes(at: instant))
      guard let encoded = try encoder.encode(frame, at: instant) else { continue }
      let image = try #require(try decoder.decode(encoded.data))
      let result = try #require(TestPattern.read(image), "frame \(index)")
      #expect(result.number == UInt32(index) && result.capturedAt == instant)
      delivered += 1
    }
    #expect(delivered >= 236)
  }

  @Test func everyLayerOfASourceCanBeRead() throws {
    let source = VideoSize(width: 1280, height: 720)
    let large = I420Frame(size: source)
    TestPattern.draw(number: 77, capturedAt: time(5), into: large, flash: false)
    for size in LayerLadder.sizes(for: source) {
      let layer = I420Frame(size: size)
      #expect(PixelConversion.scale(large, into: layer))
      #expect(TestPattern.read(layer)?.number == 77)
    }
  }

  @Test func otherFramesAreNoPattern() throws {
    for image in try TestFiles.bunny() { #expect(TestPattern.read(image) == nil) }
    for luma: UInt8 in [0, 127, 128, 255] {
      let frame = I420Frame(size: VideoSize(width: 320, height: 180))
      frame.fill(y: luma, u: 128, v: 128)
      #expect(TestPattern.read(frame) == nil)
    }
  }

  @Test func itFlashesAtFullSeconds() {
    #expect(TestPattern.flashes(at: Instant(nanoseconds: 7_000_000_000)))
    #expect(TestPattern.flashes(at: Instant(nanoseconds: 7_099_999_999)))
    #expect(!TestPattern.flashes(at: Instant(nanoseconds: 7_100_000_000)))
    #expect(!TestPattern.flashes(at: Instant(nanoseconds: 6_999_999_999)))
  }

  @Test func theFlashIsSeen() {
    let frame = I420Frame(size: VideoSize(width: 320, height: 180))
    let position = 160 * frame.strideY + 10
    TestPattern.draw(number: 3, capturedAt: .zero, into: frame, flash: true)
    #expect(frame.y[position] > 200)
    TestPattern.draw(number: 3, capturedAt: .zero, into: frame, flash: false)
    #expect(frame.y[position] < 50)
  }
}
