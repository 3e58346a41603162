import NIOCore

/// One encoded VP8 frame for the pages.
public struct ViewFrame: Sendable {
  /// The tile of the frame: 0 for this node's preview, otherwise the `tile` of a member or a stream
  /// in the snapshot.
  public var tile: UInt8
  /// Whether the frame can be decoded without an earlier frame.
  public var isKeyframe: Bool
  /// Whether to show the frame, or only to decode it.
  public var isShown: Bool
  /// The temporal layer; 0 is the base layer.
  public var temporalLayer: UInt8
  /// The number of the frame within its tile; a gap makes a page wait for the next keyframe.
  public var sequence: UInt32
  /// The wall time of sending in ms since 1970, from which a page on the same machine computes the
  /// age of the frame.
  public var sentAtMilliseconds: Double
  /// The presentation time on the boot clock, increased where necessary to be unique within the
  /// tile.
  public var timestampMicroseconds: Double
  /// The VP8 data of one frame.
  public var data: [UInt8]

  /// Creates a frame from its fields.
  public init(
    tile: UInt8, isKeyframe: Bool, isShown: Bool, temporalLayer: UInt8, sequence: UInt32,
    sentAtMilliseconds: Double, timestampMicroseconds: Double, data: [UInt8]
  ) {
    self.tile = tile
    self.isKeyframe = isKeyframe
    self.isShown = isShown
    self.temporalLayer = temporalLayer
    self.sequence = sequence
    self.sentAtMilliseconds = sentAtMilliseconds
    self.timestampMicroseconds = timestampMicroseconds
    self.data = data
  }
}

extension ViewFrame {
  static let headerBytes = 24
  private static let kind: UInt8 = 1

  /// The frame as a binary message: 24 little-endian header bytes, then the VP8 data.
  var message: ByteBuffer {
    var buffer = ByteBufferAllocator().buffer(capacity: Self.headerBytes + data.count)
    buffer.writeInteger(Self.kind)
    buffer.writeInteger(tile)
    buffer.writeInteger((isKeyframe ? 1 : 0) | (isShown ? 0 : 2), as: UInt8.self)
    buffer.writeInteger(temporalLayer)
    buffer.writeInteger(sequence, endianness: .little)
    buffer.writeInteger(sentAtMilliseconds.bitPattern, endianness: .little)
    buffer.writeInteger(timestampMicroseconds.bitPattern, endianness: .little)
    buffer.writeBytes(data)
    return buffer
  }
}
