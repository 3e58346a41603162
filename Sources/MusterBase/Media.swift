/// The size of a frame in pixels.
public struct VideoSize: Hashable, Sendable, CustomStringConvertible {
  /// The width in pixels, at least 1.
  public var width: Int
  /// The height in pixels, at least 1.
  public var height: Int

  public init(width: Int, height: Int) {
    self.width = width
    self.height = height
  }

  /// Parses text such as `640x360`; nil unless both numbers are in 1...16384.
  public init?(_ text: some StringProtocol) {
    let parts = text.split(separator: "x", omittingEmptySubsequences: false)
    guard parts.count == 2, let width = Int(parts[0]), let height = Int(parts[1]),
      (1...16384).contains(width), (1...16384).contains(height)
    else { return nil }
    self.init(width: width, height: height)
  }

  /// The shorter of width and height.
  public var shortSide: Int { min(width, height) }
  /// The number of pixels in one frame.
  public var pixels: Int { width * height }
  /// The size as text, such as `640x360`.
  public var description: String { "\(width)x\(height)" }
}

/// One encoded frame of one simulcast layer.
public struct EncodedFrame: Equatable, Sendable {
  /// The VP8 frame (RFC 6386), without an RTP payload descriptor.
  public var data: [UInt8]
  /// Whether the frame can be decoded without an earlier frame.
  public var isKeyframe: Bool
  /// The spatial layer; 0 is the smallest.
  public var layer: Int
  /// The temporal layer; 0 is the base layer.
  public var temporalLayer: Int
  /// Whether later frames refer to this frame; otherwise, it can be dropped without affecting them.
  public var isReference: Bool
  /// The capture time of the frame, on the boot clock of the capturing host.
  public var capturedAt: Instant

  public init(
    data: [UInt8], isKeyframe: Bool, layer: Int, temporalLayer: Int, isReference: Bool,
    capturedAt: Instant
  ) {
    self.data = data
    self.isKeyframe = isKeyframe
    self.layer = layer
    self.temporalLayer = temporalLayer
    self.isReference = isReference
    self.capturedAt = capturedAt
  }
}

/// One encoded frame of audio: 20 ms.
public struct EncodedAudio: Equatable, Sendable {
  /// The number of frames in a long packet.
  public static let framesPerLongPacket = 3

  /// An Opus packet of several frames, for narrow paths: most of what a packet of one frame costs
  /// there are its headers.
  public struct LongPacket: Equatable, Sendable {
    /// The Opus packet (RFC 6716), with `framesPerLongPacket` frames.
    public var data: [UInt8]
    /// The audio level of the loudest of the frames, in -dBov (RFC 6464).
    public var level: UInt8

    public init(data: [UInt8], level: UInt8) {
      self.data = data
      self.level = level
    }
  }

  /// The Opus packet (RFC 6716).
  public var data: [UInt8]
  /// The audio level in -dBov (RFC 6464): 0 is the loudest, 127 is silence.
  public var level: UInt8
  /// The capture time of the first sample, on the boot clock of the capturing host.
  public var capturedAt: Instant
  /// The long packet that ends with this frame; nil for the other frames, and while no receiver
  /// needs one.
  public var longPacket: LongPacket?

  public init(
    data: [UInt8], level: UInt8, capturedAt: Instant, longPacket: LongPacket? = nil
  ) {
    self.data = data
    self.level = level
    self.capturedAt = capturedAt
    self.longPacket = longPacket
  }
}
