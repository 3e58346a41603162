/// The VP8 payload descriptor (RFC 7741 section 4.2), sent with 15-bit PictureID, TL0PICIDX and
/// KEYIDX.
public struct VP8Descriptor: Equatable, Sendable {
  /// True if no other frame refers to this frame, so that it can be dropped (N).
  public var isNonReference: Bool
  /// Whether this packet starts a frame (S = 1 with partition index 0).
  public var isFrameStart: Bool
  /// The PictureID of 15 bits, which increases with every frame; nil if absent.
  public var pictureID: UInt16?
  /// The TL0PICIDX, which increases with every frame of the temporal base layer; nil if absent.
  public var tl0PicIdx: UInt8?
  /// The temporal layer, 0 to 3 (TID).
  public var temporalLayer: UInt8
  /// Whether the frame depends on base-layer frames only, so a receiver may switch to a higher
  /// temporal layer here (Y).
  public var isLayerSync: Bool
  /// The KEYIDX of 5 bits, which increases with every keyframe; nil if absent.
  public var keyIndex: UInt8?

  /// The number of bytes that `write` appends.
  public static let encodedBytes = 6

  /// Takes the fields of RFC 7741 section 4.2; `pictureID` has 15 bits, `keyIndex` 5.
  public init(
    isNonReference: Bool, isFrameStart: Bool, pictureID: UInt16?, tl0PicIdx: UInt8?,
    temporalLayer: UInt8, isLayerSync: Bool, keyIndex: UInt8?
  ) {
    self.isNonReference = isNonReference
    self.isFrameStart = isFrameStart
    self.pictureID = pictureID
    self.tl0PicIdx = tl0PicIdx
    self.temporalLayer = temporalLayer
    self.isLayerSync = isLayerSync
    self.keyIndex = keyIndex
  }

  /// Appends the descriptor with all optional fields; missing fields are written as 0.
  public func write(to writer: inout Writer) {
    writer.u8(0x80 | (isNonReference ? 0x20 : 0) | (isFrameStart ? 0x10 : 0))
    writer.u8(0xF0)  // I, L, T, K all present
    writer.u16(0x8000 | (pictureID ?? 0) & 0x7FFF)
    writer.u8(tl0PicIdx ?? 0)
    writer.u8(temporalLayer << 6 | (isLayerSync ? 0x20 : 0) | (keyIndex ?? 0) & 0x1F)
  }

  /// Reads the descriptor from the front of an RTP payload and leaves the VP8 data in `reader`.
  public init(reading reader: inout Reader) throws(WireError) {
    let first = try reader.u8()
    isNonReference = first & 0x20 != 0
    isFrameStart = first & 0x10 != 0 && first & 0x07 == 0
    pictureID = nil
    tl0PicIdx = nil
    temporalLayer = 0
    isLayerSync = false
    keyIndex = nil
    guard first & 0x80 != 0 else { return }
    let present = try reader.u8()
    if present & 0x80 != 0 {
      let high = try reader.u8()
      pictureID =
        high & 0x80 == 0 ? UInt16(high) : UInt16(high & 0x7F) << 8 | UInt16(try reader.u8())
    }
    if present & 0x40 != 0 { tl0PicIdx = try reader.u8() }
    if present & 0x30 != 0 {
      let byte = try reader.u8()
      if present & 0x20 != 0 {
        temporalLayer = byte >> 6
        isLayerSync = byte & 0x20 != 0
      }
      if present & 0x10 != 0 { keyIndex = byte & 0x1F }
    }
  }
}

/// Reads fields of a VP8 frame header (RFC 6386 section 9.1).
public enum VP8FrameHeader {
  /// Whether the frame is a keyframe, which is indicated by a 0 in the lowest bit of the first
  /// byte.
  public static func isKeyframe(_ frame: some Collection<UInt8>) -> Bool {
    guard let first = frame.first else { return false }
    return first & 1 == 0
  }

  /// The width and height of a keyframe in pixels; nil for other frames, a wrong start code or a
  /// size of 0.
  public static func keyframeSize(_ frame: ArraySlice<UInt8>) -> (width: Int, height: Int)? {
    guard frame.count >= 10, isKeyframe(frame) else { return nil }
    let head = Array(frame.prefix(10))
    guard head[3] == 0x9D, head[4] == 0x01, head[5] == 0x2A else { return nil }
    let width = Int(head[6]) | Int(head[7] & 0x3F) << 8
    let height = Int(head[8]) | Int(head[9] & 0x3F) << 8
    return width > 0 && height > 0 ? (width, height) : nil
  }
}
