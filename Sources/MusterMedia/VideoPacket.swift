import MusterBase
import MusterWire

/// What frame assembly needs to know of one received RTP packet of VP8.
public struct VideoPacket: Equatable, Sendable {
  /// Extended, so that it never wraps.
  public var sequence: Int64
  public var timestamp: UInt32
  public var isFrameStart: Bool
  public var isFrameEnd: Bool
  /// Whether this is the first packet of a keyframe.
  public var startsKeyframe: Bool
  public var temporalLayer: UInt8
  /// Whether the picture refers to base pictures only (Y).
  public var isLayerSync: Bool
  public var tl0PicIdx: UInt8?
  public var pictureID: UInt16?
  /// VP8 data, without the payload descriptor.
  public var data: ArraySlice<UInt8>

  /// Reads the payload descriptor; nil when it is malformed or nothing follows it.
  public init?(_ packet: RTPPacket, sequence: Int64) {
    var reader = Reader(packet.payload)
    guard let descriptor = try? VP8Descriptor(reading: &reader), !reader.isAtEnd else { return nil }
    self.sequence = sequence
    timestamp = packet.header.timestamp
    isFrameStart = descriptor.isFrameStart
    isFrameEnd = packet.header.marker
    temporalLayer = descriptor.temporalLayer
    isLayerSync = descriptor.isLayerSync
    tl0PicIdx = descriptor.tl0PicIdx
    pictureID = descriptor.pictureID
    data = reader.rest()
    startsKeyframe = descriptor.isFrameStart && VP8FrameHeader.isKeyframe(data)
  }
}
