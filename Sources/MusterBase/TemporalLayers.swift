/// The temporal layers of every simulcast layer.
public enum TemporalLayers {
  /// The number of temporal layers.
  public static let count = 3
  /// The cumulative shares of the bitrate in percent, between libwebrtc's splits 40/60/100 and
  /// 60/80/100 (`simulcast_rate_allocator.cc`). All layers depend on the base layer, so its bits
  /// improve quality most: measured at 640x360 and 1 Mbit/s, 38.9 dB with 40/60/100, 39.4 dB with
  /// 50/70/100 and 39.6 dB with 60/80/100. With the latter, however, dropping the highest layer
  /// would save a slow receiver only a fifth of the bitrate.
  public static let cumulativePercent = [50, 70, 100]
  /// For each layer n, the interval between frames of layers 0 to n, in frames of the full rate: 4
  /// for the base layer alone, 1 for all layers.
  public static let decimators = [4, 2, 1]
}
