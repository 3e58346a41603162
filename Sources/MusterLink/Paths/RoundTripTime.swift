import MusterBase

/// The round trip of one path: smoothed, its variation and its minimum (RFC 9002 section 5.3).
public struct RoundTripTime: Equatable, Sendable {
  public private(set) var smoothed: Duration
  /// The mean deviation of samples from the smoothed value.
  public private(set) var variation: Duration
  /// The shortest sample since the path is known: no queue stood in its way.
  public private(set) var minimum: Duration

  init(first sample: Duration) {
    smoothed = sample
    variation = sample / 2
    minimum = sample
  }

  mutating func update(with sample: Duration) {
    minimum = min(minimum, sample)
    let deviation = smoothed > sample ? smoothed - sample : sample - smoothed
    variation = variation * 0.75 + deviation * 0.25
    smoothed = smoothed * 0.875 + sample * 0.125
  }
}
