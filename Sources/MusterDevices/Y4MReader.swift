import MusterBase
import MusterCodecs
import MusterSystem

/// A reader for the frames of a YUV4MPEG2 stream with 8 bits and 4:2:0 chroma.
public final class Y4MReader {
  /// The size of all frames.
  public let size: VideoSize
  /// The numerator of the frame rate in frames per second.
  public let rateNumerator: Int
  /// The denominator of the frame rate.
  public let rateDenominator: Int

  private let stream: ByteStream
  private let pool: FramePool
  private let scratch: UnsafeMutableRawBufferPointer
  private static let headerLimit = 1024
  static let magic = [UInt8]("YUV4MPEG2".utf8)

  /// Opens a file or FIFO and reads the header; throws for other formats and chroma layouts.
  public convenience init(
    path: String, cancellation: Cancellation = Cancellation()
  ) throws(DeviceError) {
    try self.init(stream: ByteStream(path: path, cancellation: cancellation))
  }

  init(stream: ByteStream) throws(DeviceError) {
    guard let line = try stream.readLine(limit: Self.headerLimit) else {
      throw DeviceError(what: "\(stream.path): cancelled", hint: "start again")
    }
    let header = try Header(line, path: stream.path)
    size = header.size
    rateNumerator = header.numerator
    rateDenominator = header.denominator
    self.stream = stream
    pool = FramePool(size: size)
    scratch = .allocate(byteCount: I420Frame.packedByteCount(size), alignment: 64)
  }

  deinit { scratch.deallocate() }

  /// The next frame; nil at the end of the stream, or if the last frame is truncated.
  public func next() throws(DeviceError) -> I420Frame? {
    guard try skipFrameHeader(), try stream.read(into: scratch) == .complete else { return nil }
    let frame = pool.frame()
    frame.fill(packed: UnsafeRawBufferPointer(scratch))
    return frame
  }

  /// Skips one frame without unpacking it; false at the end of the stream.
  func skip() throws(DeviceError) -> Bool {
    guard try skipFrameHeader() else { return false }
    return try stream.skip(scratch.count) == .complete
  }

  /// Returns to the first frame; on a FIFO the next writer must start with an equivalent header.
  func rewind() throws(DeviceError) {
    try stream.rewind()
    guard let line = try stream.readLine(limit: Self.headerLimit), !line.isEmpty else { return }
    try accept(header: line)
  }

  /// Checks a repeated header, from a rewound file or the next writer of a FIFO.
  private func accept(header line: [UInt8]) throws(DeviceError) {
    let header = try Header(line, path: stream.path)
    guard header.size == size else {
      throw DeviceError(
        what: "\(stream.path): frames changed from \(size) to \(header.size)",
        hint: "write one size, or start again")
    }
  }

  private func skipFrameHeader() throws(DeviceError) -> Bool {
    guard var line = try stream.readLine(limit: Self.headerLimit), !line.isEmpty else {
      return false
    }
    if line.starts(with: Self.magic) {
      // The next writer of a FIFO followed without a gap.
      try accept(header: line)
      guard let next = try stream.readLine(limit: Self.headerLimit), !next.isEmpty else {
        return false
      }
      line = next
    }
    guard line.starts(with: "FRAME".utf8) else {
      throw DeviceError(
        what: "\(stream.path): a frame does not begin with FRAME",
        hint: "the file is damaged; make it again")
    }
    return true
  }

  private struct Header {
    var size = VideoSize(width: 0, height: 0)
    var numerator = 30
    var denominator = 1

    init(_ line: [UInt8], path: String) throws(DeviceError) {
      let words = String(decoding: line, as: UTF8.self).split(separator: " ")
      guard words.first == "YUV4MPEG2" else {
        throw DeviceError(what: "\(path) is not a Y4M file", hint: "see 'muster join --help'")
      }
      for word in words.dropFirst() { try read(word, path: path) }
      guard (1...I420Frame.maximumSide).contains(size.width),
        (1...I420Frame.maximumSide).contains(size.height),
        size.pixels <= VideoSources.maximumPixels
      else {
        throw DeviceError(
          what: "\(path): frames of \(size)", hint: "use up to 4096x2304, such as 1280x720")
      }
    }

    private mutating func read(_ word: Substring, path: String) throws(DeviceError) {
      let value = word.dropFirst()
      switch word.first {
      case "W": size.width = Int(value) ?? 0
      case "H": size.height = Int(value) ?? 0
      case "F": readRate(value)
      case "C":
        // 420, 420jpeg, 420mpeg2 and 420paldv differ in chroma siting only, by half a pixel.
        guard ["420", "420jpeg", "420mpeg2", "420paldv"].contains(value) else {
          throw DeviceError(
            what: "\(path): colours in the form \(value.prefix(16))",
            hint: "convert it: ffmpeg -i FILE -pix_fmt yuv420p OUT.y4m")
        }
      default: break
      }
    }

    /// Parses the frame rate; a missing or implausible rate leaves the default of 30.
    private mutating func readRate(_ value: Substring) {
      let parts = value.split(separator: ":")
      guard parts.count == 2, let above = Int(parts[0]), let below = Int(parts[1]),
        (1...1_000_000).contains(above), (1...1_000_000).contains(below),
        above <= below &* 240, below <= above
      else { return }
      numerator = above
      denominator = below
    }
  }
}
