/// A simulcast layer that is to be encoded, and its bitrate.
public struct EncoderTarget: Equatable, Sendable {
  /// The spatial layer; 0 is the smallest.
  public var layer: Int
  /// The target bitrate.
  public var kilobitsPerSecond: Int

  public init(layer: Int, kilobitsPerSecond: Int) {
    self.layer = layer
    self.kilobitsPerSecond = kilobitsPerSecond
  }
}
