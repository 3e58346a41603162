import MusterBase

/// The round-trip time of one path: its smoothed value, variation and minimum (RFC 9002 sections
/// 5.2 and 5.3).
public struct RoundTripTime: Equatable, Sendable {
  /// The exponentially weighted average, with a weight of 1/8 for each new sample.
  public private(set) var smoothed: Duration
  /// The mean deviation of samples from the smoothed value.
  public private(set) var variation: Duration
  /// The smallest sample so far, which is the closest to a round trip without queueing delay.
  public private(set) var minimum: Duration

  /// The time within which the answer to a request can be expected: almost no round trip is longer
  /// (the probe timeout of RFC 9002 section 6.2.1, without the delay of an acknowledgement).
  public var answerTime: Duration { smoothed + variation * 4 }

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
