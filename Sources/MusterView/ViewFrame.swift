import NIOCore

/// One encoded VP8 frame on its way to the pages.
public struct ViewFrame: Sendable {
  /// The tile that it belongs to: 0 is this node's preview, others as in the snapshot's members.
  public var tile: UInt8
  /// Whether the frame can be decoded without others.
  public var isKeyframe: Bool
  /// 0 for the base layer.
  public var temporalLayer: UInt8
  /// Counts the frames offered for this tile: a gap makes a page wait for the next keyframe.
  public var sequence: UInt32
  /// Wall time in ms since 1970, from which a page on the same machine computes the age of the
  /// frame.
  public var sentAtMilliseconds: Double
  /// When it is to be shown; unique within the tile.
  public var timestampMicroseconds: Double
  /// VP8, one frame.
  public var data: [UInt8]

  /// A frame of these fields.
  public init(
    tile: UInt8, isKeyframe: Bool, temporalLayer: UInt8, sequence: UInt32,
    sentAtMilliseconds: Double, timestampMicroseconds: Double, data: [UInt8]
  ) {
    self.tile = tile
    self.isKeyframe = isKeyframe
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

  /// The binary message of the frame: 24 little-endian header bytes, then VP8 as it came.
  var message: ByteBuffer {
    var buffer = ByteBufferAllocator().buffer(capacity: Self.headerBytes + data.count)
    buffer.writeInteger(Self.kind)
    buffer.writeInteger(tile)
    buffer.writeInteger(isKeyframe ? 1 : 0, as: UInt8.self)
    buffer.writeInteger(temporalLayer)
    buffer.writeInteger(sequence, endianness: .little)
    buffer.writeInteger(sentAtMilliseconds.bitPattern, endianness: .little)
    buffer.writeInteger(timestampMicroseconds.bitPattern, endianness: .little)
    buffer.writeBytes(data)
    return buffer
  }
}
