import MusterBase

/// Estimates the delay that a jitter buffer needs for the packets of one sender.
///
/// The algorithm follows NetEq (`relative_arrival_delay_tracker.cc`, `underrun_optimizer.cc`): a
/// packet's delay is relative to the fastest packet of the last two seconds, so clock drift cancels
/// out. The largest delay of every 500 ms enters a histogram with exponential forgetting. The 95th
/// percentile of the histogram is the estimate.
public struct ArrivalDelay: Equatable, Sendable {
  /// The number of packets in the sliding window, 2 s of 20 ms packets. The fastest packet in the
  /// window is the reference.
  static let window = 100
  static let interval = Duration.milliseconds(500)
  static let forget = 0.983
  static let percentile = 0.95
  /// The bucket size of 5 ms, for delays up to 400 ms: more delay would impair a conversation more
  /// than concealment does.
  static let bucketMilliseconds = 5
  static let buckets = 80
  /// The number of intervals before the first estimate.
  static let warmUp = 2

  /// The smallest transit time in the window: arrival minus media time, in nanoseconds. The two
  /// clocks differ, so only differences of transit times are meaningful.
  public private(set) var fastest: Int64 = 0

  private var transits: [Int64] = []
  private var oldest = 0
  private var histogram = [Double](repeating: 0, count: buckets)
  private var intervals = 0
  private var largest: Int64 = 0
  private var intervalBegan: Instant?

  /// Creates an estimator without an estimate.
  public init() {}

  /// Adds the transit time of a packet: arrival minus media time, in nanoseconds.
  public mutating func add(transit: Int64, at now: Instant) {
    if transits.count < Self.window {
      transits.append(transit)
    } else {
      transits[oldest] = transit
      oldest = (oldest + 1) % Self.window
    }
    fastest = transits.reduce(transit, min)
    largest = max(largest, transit &- fastest)
    let began = intervalBegan ?? now
    intervalBegan = began
    guard now - began >= Self.interval else { return }
    record(largest)
    largest = 0
    intervalBegan = now
  }

  /// Discards the window of transit times, but not the histogram, after the sender's clock has
  /// jumped.
  public mutating func restartClock() {
    transits.removeAll(keepingCapacity: true)
    (oldest, largest, intervalBegan) = (0, 0, nil)
  }

  /// The delay that 95 % of the intervals do not exceed; nil during warm-up.
  public var percentile: Duration? {
    guard intervals >= Self.warmUp else { return nil }
    var sum = 0.0
    for (index, weight) in histogram.enumerated() {
      sum += weight
      if sum >= Self.percentile { return .milliseconds((index + 1) * Self.bucketMilliseconds) }
    }
    return .milliseconds(Self.buckets * Self.bucketMilliseconds)
  }

  private mutating func record(_ delay: Int64) {
    let bucket = delay / (Int64(Self.bucketMilliseconds) * 1_000_000)
    intervals = min(intervals + 1, 1_000_000)
    // At first the histogram is the plain average of all intervals, so its weights always sum to 1.
    let keep = min(Self.forget, 1 - 1 / Double(intervals))
    for index in histogram.indices { histogram[index] *= keep }
    histogram[Int(min(max(bucket, 0), Int64(Self.buckets - 1)))] += 1 - keep
  }
}
