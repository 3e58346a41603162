import MusterBase

/// Whether a path's queue grows, shrinks or does neither.
package enum QueueTrend: Equatable, Sendable {
  case steady
  case growing
  case shrinking
}

/// Detects growing queues from the slope of the one-way delay ("trendline estimator" in WebRTC).
///
/// The slope is compared with a threshold that adapts: it rises fast where delays vary by
/// themselves, and where a TCP flow fills the queue, beside which a low threshold would starve, and
/// falls slowly (Carlucci et al., "Analysis and design of the Google congestion control for
/// WebRTC", 2016). Its limit is low, since flows like this one, too, fill a queue together.
package struct TrendDetector: Sendable {
  /// The groups over which the slope is taken.
  static let window = 20
  /// The weight of the past in the smoothed delay.
  static let smoothing = 0.9
  /// The slope is multiplied with this and with the number of intervals so far, at most
  /// `mostIntervals`, to get a delay in milliseconds.
  static let gain = 4.0
  static let mostIntervals = 60
  /// The limits of the threshold in milliseconds.
  static let thresholds = 6.0...10.0
  static let firstThreshold = 10.0
  /// The speed of the threshold towards a larger and a smaller trend, per millisecond.
  static let rise = 0.0087
  static let fall = 0.002
  /// The threshold ignores trends that exceed it by this many milliseconds.
  static let outlier = 15.0
  /// The time for which the trend must exceed the threshold.
  static let overuse = Duration.milliseconds(10)

  private struct Point {
    /// The time since the first interval, in milliseconds.
    let x: Double
    /// The smoothed delay in milliseconds.
    let y: Double
  }

  private var points = RingBuffer<Point>(capacity: window)
  private var origin: Instant?
  private var intervals = 0
  private var delay = 0.0
  private var smoothedDelay = 0.0
  private var slope = 0.0
  private var threshold = firstThreshold
  private var thresholdAt: Instant?
  private var exceededFor: Duration?
  private var exceededTimes = 0

  package private(set) var trend = QueueTrend.steady

  package init() {}

  /// Takes the interval between two groups of packets, in order.
  package mutating func add(_ interval: PacketGroups.Interval) {
    let origin = origin ?? interval.arrivedAt
    self.origin = origin
    intervals = min(intervals + 1, Self.mostIntervals)
    delay += (interval.arriving - interval.sending).inMilliseconds
    smoothedDelay = Self.smoothing * smoothedDelay + (1 - Self.smoothing) * delay
    points.append(Point(x: (interval.arrivedAt - origin).inMilliseconds, y: smoothedDelay))
    let slope = points.isFull ? (fittedSlope ?? self.slope) : self.slope
    detect(slope: slope, interval: interval.sending, at: interval.arrivedAt)
  }

  private mutating func detect(slope: Double, interval: Duration, at now: Instant) {
    let value = intervals < 2 ? 0 : Double(intervals) * slope * Self.gain
    if value > threshold {
      exceededFor = exceededFor.map { $0 + interval } ?? interval / 2
      exceededTimes += 1
      if let exceededFor, exceededFor > Self.overuse, exceededTimes > 1, slope >= self.slope {
        (self.exceededFor, exceededTimes) = (.zero, 0)
        trend = .growing
      }
    } else {
      (exceededFor, exceededTimes) = (nil, 0)
      trend = value < -threshold ? .shrinking : .steady
    }
    self.slope = slope
    adapt(to: abs(value), at: now)
  }

  private mutating func adapt(to value: Double, at now: Instant) {
    let elapsed = thresholdAt.map { min(max((now - $0).inMilliseconds, 0), 100) } ?? 0
    thresholdAt = now
    guard value <= threshold + Self.outlier else { return }
    let speed = value < threshold ? Self.fall : Self.rise
    threshold += speed * (value - threshold) * elapsed
    threshold = min(max(threshold, Self.thresholds.lowerBound), Self.thresholds.upperBound)
  }

  /// The slope of the regression line; nil if all points have the same time.
  private var fittedSlope: Double? {
    let count = Double(points.count)
    var (meanX, meanY) = (0.0, 0.0)
    for index in 0..<points.count {
      meanX += points[index].x / count
      meanY += points[index].y / count
    }
    var (covariance, variance) = (0.0, 0.0)
    for index in 0..<points.count {
      let x = points[index].x - meanX
      covariance += x * (points[index].y - meanY)
      variance += x * x
    }
    return variance > 0 ? covariance / variance : nil
  }
}
