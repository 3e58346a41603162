/// The size of a picture in pixels.
public struct VideoSize: Hashable, Sendable, CustomStringConvertible {
  public var width: Int
  public var height: Int

  public init(width: Int, height: Int) {
    self.width = width
    self.height = height
  }

  /// Reads `640x360`.
  public init?(_ text: some StringProtocol) {
    let parts = text.split(separator: "x", omittingEmptySubsequences: false)
    guard parts.count == 2, let width = Int(parts[0]), let height = Int(parts[1]),
      (1...16384).contains(width), (1...16384).contains(height)
    else { return nil }
    self.init(width: width, height: height)
  }

  public var shortSide: Int { min(width, height) }
  public var pixels: Int { width * height }
  public var description: String { "\(width)x\(height)" }
}

/// One encoded picture of one simulcast layer.
public struct EncodedFrame: Equatable, Sendable {
  /// The VP8 frame (RFC 6386), without any payload descriptor.
  public var data: [UInt8]
  public var isKeyframe: Bool
  /// Spatial layer: 0 is the smallest.
  public var layer: Int
  /// Temporal layer: 0 is the base.
  public var temporalLayer: Int
  /// Whether later frames use it; a frame that none uses may be left out freely.
  public var isReference: Bool
  /// When the picture was captured.
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

/// One encoded Opus packet of 20 ms.
public struct EncodedAudio: Equatable, Sendable {
  public var data: [UInt8]
  /// RFC 6464 level: 0 is loudest, 127 is silence, in -dBov.
  public var level: UInt8
  public var capturedAt: Instant

  public init(data: [UInt8], level: UInt8, capturedAt: Instant) {
    self.data = data
    self.level = level
    self.capturedAt = capturedAt
  }
}
