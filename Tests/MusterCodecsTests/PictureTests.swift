import MusterBase
import MusterCodecs
import Testing

@Suite struct FrameTests {
  @Test func packingAndFillingAreInverse() {
    for size in [(1, 1), (2, 2), (175, 143), (320, 180)] {
      let size = VideoSize(width: size.0, height: size.1)
      var random = PRNG(seed: 9)
      let bytes = random.bytes(I420Frame.packedByteCount(size))
      let frame = I420Frame(size: size)
      bytes.withUnsafeBytes { frame.fill(packed: $0) }
      #expect(frame.packedBytes() == bytes)
    }
  }

  @Test func aPoolReusesWhatComesBack() {
    let pool = FramePool(size: VideoSize(width: 64, height: 64), capacity: 1)
    let first = pool.frame().y
    // The first frame has been released, so its memory is reused.
    #expect(pool.frame().y == first)
    let held = pool.frame()
    let other = pool.frame()
    #expect(held.y != other.y)
  }

  @Test(arguments: PixelFormat.allCases.filter { $0 != .mjpeg })
  func everyLayoutOfMidGreyIsMidGrey(format: PixelFormat) throws {
    let size = VideoSize(width: 37, height: 21)
    let stride = format.minimumStride(width: size.width) + 6
    let count = try #require(format.byteCount(size, stride: stride))
    // Bytes of 128 are grey in all YUV layouts, and in RGB, where luma becomes 126.
    let bytes = [UInt8](repeating: 128, count: count)
    let frame = I420Frame(size: size)
    let converted = bytes.withUnsafeBytes {
      PixelConversion.convert($0, format: format, stride: stride, into: frame)
    }
    #expect(converted)
    let packed = frame.packedBytes()
    #expect(packed.allSatisfy { (124...130).contains($0) })
    let short = bytes.dropLast()
    let tooShort = short.withUnsafeBytes {
      PixelConversion.convert($0, format: format, stride: stride, into: frame)
    }
    #expect(!tooShort)
  }

  @Test func interleavedLumaIsFound() {
    let size = VideoSize(width: 4, height: 2)
    let frame = I420Frame(size: size)
    let yuyv: [UInt8] = [
      10, 100, 20, 200, 30, 100, 40, 200,
      50, 100, 60, 200, 70, 100, 80, 200,
    ]
    let converted = yuyv.withUnsafeBytes {
      PixelConversion.convert($0, format: .yuyv, into: frame)
    }
    #expect(converted)
    #expect(
      frame.packedBytes() == [10, 20, 30, 40, 50, 60, 70, 80, 100, 100, 200, 200])
  }

  @Test func brokenJPEGIsRefused() {
    let frame = I420Frame(size: VideoSize(width: 64, height: 48))
    var random = PRNG(seed: 3)
    for count in [0, 1, 2, 100, 5000] {
      var bytes: [UInt8] = [0xFF, 0xD8, 0xFF, 0xE0] + random.bytes(count)
      #expect(!bytes.withUnsafeBytes { PixelConversion.convert($0, format: .mjpeg, into: frame) })
      bytes.removeAll()
      #expect(!bytes.withUnsafeBytes { PixelConversion.convert($0, format: .mjpeg, into: frame) })
    }
  }

  @Test func scalingAverages() {
    let large = I420Frame(size: VideoSize(width: 64, height: 64))
    large.fill(y: 77, u: 99, v: 140)
    let small = I420Frame(size: VideoSize(width: 32, height: 16))
    #expect(PixelConversion.scale(large, into: small))
    #expect(small.packedBytes()[0..<512].allSatisfy { $0 == 77 })
  }
}
