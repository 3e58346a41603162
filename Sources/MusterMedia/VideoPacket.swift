import MusterBase
import MusterWire

/// The fields of a received VP8 packet that frame assembly uses.
public struct VideoPacket: Equatable, Sendable {
  /// The extended sequence number, which does not wrap.
  public var sequence: Int64
  /// The RTP timestamp, at 90 kHz.
  public var timestamp: UInt32
  /// Whether the packet starts a frame (S with partition index 0).
  public var isFrameStart: Bool
  /// Whether the packet ends a frame (the RTP marker).
  public var isFrameEnd: Bool
  /// Whether this is the first packet of a keyframe.
  public var startsKeyframe: Bool
  /// The temporal layer (TID).
  public var temporalLayer: UInt8
  /// Whether the frame depends on base-layer frames only (Y).
  public var isLayerSync: Bool
  /// The TL0PICIDX; nil if absent.
  public var tl0PicIdx: UInt8?
  /// The PictureID; nil if absent.
  public var pictureID: UInt16?
  /// The VP8 data without the payload descriptor.
  public var data: ArraySlice<UInt8>

  /// Parses the payload descriptor; nil if it is malformed or no data follows.
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
