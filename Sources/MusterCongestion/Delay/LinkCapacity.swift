import MusterBase

/// The rate at which the path has been found full: the mean and the variance of the acknowledged
/// rate whenever the queue began to grow.
struct LinkCapacity: Sendable {
  /// The weight of a new measurement.
  static let weight = 0.05
  /// The limits of the variance, in units of the mean in kbit/s.
  static let variances = 0.4...2.5

  private var mean: Double?
  private var variance = variances.lowerBound

  /// The mean; nil without measurements.
  var rate: DataRate? { mean.map { DataRate(kbps: $0) } }

  /// Whether a rate lies more than three standard deviations above the mean, or below it: the path
  /// is another then.
  func isBelow(_ rate: DataRate) -> Bool { bounds.map { rate.kbps > $0.upperBound } ?? false }
  func isAbove(_ rate: DataRate) -> Bool { bounds.map { rate.kbps < $0.lowerBound } ?? false }

  /// Takes the acknowledged rate at which the queue began to grow.
  mutating func found(_ rate: DataRate) {
    guard let old = mean else {
      mean = rate.kbps
      return
    }
    let mean = (1 - Self.weight) * old + Self.weight * rate.kbps
    self.mean = mean
    let error = mean - rate.kbps
    variance = (1 - Self.weight) * variance + Self.weight * error * error / max(mean, 1)
    variance = min(max(variance, Self.variances.lowerBound), Self.variances.upperBound)
  }

  private var bounds: ClosedRange<Double>? {
    mean.map { mean in
      let deviation = 3 * (variance * mean).squareRoot()
      return max(mean - deviation, 0)...(mean + deviation)
    }
  }
}
