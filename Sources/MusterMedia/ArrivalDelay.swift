import MusterBase

/// How much later than the fastest of late the packets of one speaker arrive.
///
/// After NetEq's `relative_arrival_delay_tracker.cc` and `underrun_optimizer.cc`: the delay of a
/// packet is relative to the fastest within two seconds (so that clocks may drift), the largest of
/// every 500 ms goes into a histogram that forgets, and its 95th percentile is what to be ready
/// for.
public struct ArrivalDelay: Equatable, Sendable {
  /// 2 s of packets.
  static let window = 100
  static let interval = Duration.milliseconds(500)
  static let forget = 0.983
  static let percentile = 0.95
  /// 5 ms each, up to 400 ms: a deeper buffer would be worse than what it conceals.
  static let bucketMilliseconds = 5
  static let buckets = 80
  /// Intervals before the histogram is believed.
  static let warmUp = 2

  /// The transit time of the fastest packet of late, in nanoseconds of no meaning by themselves.
  public private(set) var fastest: Int64 = 0

  private var transits: [Int64] = []
  private var oldest = 0
  private var histogram = [Double](repeating: 0, count: buckets)
  private var intervals = 0
  private var largest: Int64 = 0
  private var intervalBegan: Instant?

  public init() {}

  /// Takes the transit time of a packet: arrival less media time, in nanoseconds.
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

  /// The source's clock jumped: what was learned of its base is void, of its jitter is not.
  public mutating func restartClock() {
    transits.removeAll(keepingCapacity: true)
    (oldest, largest, intervalBegan) = (0, 0, nil)
  }

  /// The delay that 95 % of the intervals stay below; nil until there were enough of them.
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
    // At first an average of what there is, so that the first seconds count in full.
    let keep = min(Self.forget, 1 - 1 / Double(intervals))
    for index in histogram.indices { histogram[index] *= keep }
    histogram[Int(min(max(bucket, 0), Int64(Self.buckets - 1)))] += 1 - keep
  }
}
