import MusterBase
import MusterWire

/// An encoded frame split into RTP payloads, which all links share.
public struct PacketizedFrame: Equatable, Sendable {
  /// The spatial layer; 0 is the smallest.
  public var layer: Int
  /// The temporal layer; 0 is the base.
  public var temporalLayer: Int
  /// Whether the frame decodes without any earlier frame.
  public var isKeyframe: Bool
  /// Whether later frames may refer to this one.
  public var isReference: Bool
  /// The capture time on the sender's media clock.
  public var capturedAt: Instant
  /// The RTP timestamp: `capturedAt` on the 90 kHz clock.
  public var timestamp: UInt32
  /// The RTP payloads, each of a payload descriptor and VP8 data. The RTP header of the last
  /// payload has the marker bit.
  public var payloads: [ArraySlice<UInt8>]

  /// The bytes of all payloads.
  var bytes: Int { payloads.reduce(0) { $0 + $1.count } }

  /// Creates a frame; `timestamp` must be `capturedAt` on the 90 kHz clock, and `payloads` must
  /// have one element per packet.
  public init(
    layer: Int, temporalLayer: Int, isKeyframe: Bool, isReference: Bool, capturedAt: Instant,
    timestamp: UInt32, payloads: [ArraySlice<UInt8>]
  ) {
    self.layer = layer
    self.temporalLayer = temporalLayer
    self.isKeyframe = isKeyframe
    self.isReference = isReference
    self.capturedAt = capturedAt
    self.timestamp = timestamp
    self.payloads = payloads
  }
}

/// Splits the frames of one layer into RTP payloads (RFC 7741).
public struct VideoPacketizer: Sendable {
  /// The maximum number of VP8 bytes in one payload.
  static let dataBytes = Limits.rtpPayloadBytes - VP8Descriptor.encodedBytes

  private let layer: Int
  private var pictureID: UInt16
  private var tl0PicIdx: UInt8
  private var keyIndex: UInt8
  /// Whether an enhancement frame since the latest base-layer frame can be a reference.
  private var hasEnhancementReference = false

  /// Creates a packetizer whose counters start at random values from `seed`, as RFC 7741 section
  /// 4.2 recommends, so that no receiver relies on zero.
  public init(layer: Int, seed: UInt64) {
    self.layer = layer
    var random = PRNG(seed: seed)
    pictureID = UInt16(random.below(0x8000))
    tl0PicIdx = UInt8(random.below(0x100))
    keyIndex = UInt8(random.below(0x20))
  }

  /// Splits a frame into payloads; nil if the frame is empty, oversized or of another layer.
  public mutating func packetize(_ frame: EncodedFrame) -> PacketizedFrame? {
    guard frame.layer == layer, !frame.data.isEmpty, frame.data.count <= Limits.frameBytes,
      (0...3).contains(frame.temporalLayer)
    else { return nil }
    var descriptor = nextDescriptor(frame)
    // One array holds all payloads of the frame contiguously.
    let count = frame.data.count
    let parts = (count + Self.dataBytes - 1) / Self.dataBytes
    var writer = Writer(capacity: parts * VP8Descriptor.encodedBytes + count)
    for part in 0..<parts {
      descriptor.isFrameStart = part == 0
      descriptor.write(to: &writer)
      writer.append(frame.data[Self.range(of: part, of: parts, in: count)])
    }
    let bytes = writer.bytes
    let payloads = (0..<parts).map { part in
      let range = Self.range(of: part, of: parts, in: count)
      let start = range.lowerBound + part * VP8Descriptor.encodedBytes
      return bytes[start..<(start + VP8Descriptor.encodedBytes + range.count)]
    }
    return PacketizedFrame(
      layer: layer, temporalLayer: frame.temporalLayer, isKeyframe: frame.isKeyframe,
      isReference: frame.isReference, capturedAt: frame.capturedAt,
      timestamp: RTPTime.timestamp(of: frame.capturedAt, clockRate: RTPTime.videoClockRate),
      payloads: payloads)
  }

  private mutating func nextDescriptor(_ frame: EncodedFrame) -> VP8Descriptor {
    pictureID = (pictureID &+ 1) & 0x7FFF
    if frame.isKeyframe { keyIndex = (keyIndex &+ 1) & 0x1F }
    let isBase = frame.temporalLayer == 0
    if isBase {
      tl0PicIdx &+= 1
      hasEnhancementReference = false
    }
    let isSync = !isBase && !hasEnhancementReference
    if !isBase && frame.isReference { hasEnhancementReference = true }
    return VP8Descriptor(
      isNonReference: !frame.isReference, isFrameStart: true, pictureID: pictureID,
      tl0PicIdx: tl0PicIdx, temporalLayer: UInt8(frame.temporalLayer), isLayerSync: isSync,
      keyIndex: keyIndex)
  }

  /// The byte range of one part. All parts have the same size except the last, which is shorter by
  /// fewer bytes than there are parts: equal datagrams can be sent in one segmented send
  /// (UDP_SEGMENT), and a very short last packet would be lost as easily as a full packet.
  private static func range(of part: Int, of parts: Int, in count: Int) -> Range<Int> {
    let size = (count + parts - 1) / parts
    return min(part * size, count)..<min((part + 1) * size, count)
  }
}
