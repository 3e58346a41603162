import MusterBase
import MusterSystem

/// A reader for the encoded frames of an IVF file with VP8.
public final class IVFReader {
  /// The size in the file header; the frame size may change at any keyframe.
  public let size: VideoSize
  /// The denominator of the time base: timestamps count units of `scale / rate` seconds.
  public let rate: Int
  /// The numerator of the time base.
  public let scale: Int

  /// A frame as stored in the file.
  public struct Frame: Equatable, Sendable {
    /// The presentation time in units of `scale / rate` seconds.
    public let timestamp: UInt64
    /// The VP8 frame.
    public let data: [UInt8]
  }

  private let stream: ByteStream
  static let magic = [UInt8]("DKIF".utf8)
  private static let headerBytes = 32
  private static let frameHeaderBytes = 12

  /// Opens a file or FIFO and reads the header; throws if it is not an IVF file with VP8.
  public convenience init(
    path: String, cancellation: Cancellation = Cancellation()
  ) throws(DeviceError) {
    try self.init(stream: ByteStream(path: path, cancellation: cancellation))
  }

  init(stream: ByteStream) throws(DeviceError) {
    self.stream = stream
    let header = try Self.header(stream)
    size = VideoSize(
      width: Int(Self.littleEndian(header[12..<14])),
      height: Int(Self.littleEndian(header[14..<16])))
    rate = Int(Self.littleEndian(header[16..<20]))
    scale = Int(Self.littleEndian(header[20..<24]))
    guard rate > 0, scale > 0 else { throw Self.damaged(stream, "a time base of zero") }
  }

  /// The next frame; nil at the end of the file, or if the last frame is truncated.
  public func next() throws(DeviceError) -> Frame? {
    guard var header = try stream.read(count: Self.frameHeaderBytes),
      header.count == Self.frameHeaderBytes
    else { return nil }
    if header.starts(with: Self.magic) {
      // The next writer of a FIFO followed without a gap; the rest of its header is skipped.
      guard try stream.skip(Self.headerBytes - Self.frameHeaderBytes) == .complete,
        let next = try stream.read(count: Self.frameHeaderBytes),
        next.count == Self.frameHeaderBytes
      else { return nil }
      header = next
    }
    let count = Int(Self.littleEndian(header[0..<4]))
    guard count <= Limits.frameBytes else {
      throw Self.damaged(stream, "a frame of \(count) bytes")
    }
    guard let data = try stream.read(count: count), data.count == count else { return nil }
    return Frame(timestamp: Self.littleEndian(header[4..<12]), data: data)
  }

  func rewind() throws(DeviceError) {
    try stream.rewind()
    _ = try Self.header(stream)
  }

  private static func header(_ stream: ByteStream) throws(DeviceError) -> [UInt8] {
    guard let header = try stream.read(count: headerBytes), header.count == headerBytes else {
      throw damaged(stream, "no complete IVF header")
    }
    guard header.starts(with: magic) else {
      throw DeviceError(
        what: "\(stream.path) is not an IVF file", hint: "see 'muster join --help'")
    }
    guard header[8..<12].elementsEqual("VP80".utf8) else {
      throw DeviceError(
        what: "\(stream.path) does not hold VP8",
        hint: "convert it: ffmpeg -i FILE -c:v libvpx OUT.ivf")
    }
    let declared = Int(littleEndian(header[6..<8]))
    if declared > headerBytes { _ = try stream.skip(declared - headerBytes) }
    return header
  }

  private static func damaged(_ stream: ByteStream, _ what: String) -> DeviceError {
    DeviceError(what: "\(stream.path): \(what)", hint: "the file is damaged; make it again")
  }

  private static func littleEndian(_ bytes: ArraySlice<UInt8>) -> UInt64 {
    bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }
}
