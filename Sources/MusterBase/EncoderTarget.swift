/// A simulcast layer that is to be encoded, and how.
public struct EncoderTarget: Equatable, Sendable {
  /// The spatial layer; 0 is the smallest.
  public var layer: Int
  /// The target bitrate of all temporal layers together, whether they are encoded or not.
  public var kilobitsPerSecond: Int
  /// The number of temporal layers that somebody gets, from the base layer on; the others need not
  /// be encoded.
  public var temporalLayers: Int
  /// Whether the encoder works fast rather than well, because the CPU is short.
  public var isQuick: Bool

  public init(
    layer: Int, kilobitsPerSecond: Int, temporalLayers: Int = TemporalLayers.count,
    isQuick: Bool = false
  ) {
    self.layer = layer
    self.kilobitsPerSecond = kilobitsPerSecond
    self.temporalLayers = temporalLayers
    self.isQuick = isQuick
  }
}
