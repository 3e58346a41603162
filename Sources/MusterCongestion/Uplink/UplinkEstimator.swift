import MusterBase

/// Learns what the uplink carries, from paths on which packets queue at the same time.
///
/// Each path's own estimate finds the path's share by competing with the others. What arrives over
/// all of them while they queue is what the uplink carries: it can then be divided by plan. From
/// there the rate rises slowly, to find out whether the uplink carries more, and less often each
/// time that it does not.
public struct UplinkEstimator: Sendable {
  /// The share that is kept of what arrives, so that the queue drains.
  private static let keep = 0.92
  /// The least rate that is learnt, which is the least that can be given: audio takes as much, and
  /// a rate near to nothing would hardly grow.
  private static let least = DataRate(kbps: 64)
  /// The share of what the paths are believed to carry below which what arrives does not fill the
  /// uplink: delays grow for another reason, such as a network that has just changed.
  private static let used = 0.4
  /// The time for which the uplink has to be busy.
  private static let patience = Duration.milliseconds(200)
  /// The time after which what arrives shows the effect of a lower rate.
  private static let effect = Duration.milliseconds(1_500)
  /// The time for which the rate stays. It is twice as long each time that the rate has risen in
  /// vain.
  private static let holds = Duration.seconds(5)...Duration.seconds(80)
  /// The time without reports after which the rate is forgotten.
  private static let memory = Duration.seconds(30)
  /// The ratio of two rates of the same uplink, learnt one after the other.
  private static let similar = 0.8...1.25
  /// The growth in a second, which is twice as fast every 10 s, and its limit.
  private static let growth = (start: 0.02, doubling: Duration.seconds(10), most: 0.2)

  /// The rate in IP packets; nil until it is learnt.
  public private(set) var rate: DataRate?

  private var timeline = UplinkTimeline()
  private var learnt: (rate: DataRate, at: Instant)?
  private var hold = holds.lowerBound
  /// The times of the last reports, and of the last growth.
  private var updatedAt: Instant?
  private var grownAt: Instant?

  /// Creates the estimator of an uplink that has shown no limit.
  public init() {}

  /// Takes what a report says about packets on a path, of which the fastest took `leastTransit` on
  /// the clocks of both ends. A packet that has left later than now is one whose receiver's clock
  /// has jumped, or a lie, and does not count.
  public mutating func reported(
    _ results: [PacketResult], leastTransit: Duration?, at now: Instant
  ) {
    guard let leastTransit else { return }
    for packet in results {
      guard let arrivedAt = packet.arrivedAt else { continue }
      let wait = max(arrivedAt - packet.sentAt - leastTransit, .zero)
      guard wait <= now - packet.sentAt else { continue }
      timeline.add(bytes: packet.bytes, sentAt: packet.sentAt, wait: wait)
    }
  }

  /// Learns the rate from packets that have left until `settled`, as those after it may not be
  /// reported yet, if the queues of several paths grow (`isOverused`), of which the estimates come
  /// to `believed`. Returns whether it does.
  public mutating func update(
    isOverused: Bool, believed: DataRate, settled: Instant, at now: Instant
  ) -> Bool {
    if let updatedAt, now - updatedAt > Self.memory { self = UplinkEstimator() }
    updatedAt = now
    let start = learnt.map { $0.at + Self.effect } ?? .zero
    guard isOverused,
      let carried = timeline.rateWhileBusy(from: start, to: settled, least: Self.patience),
      carried > believed * Self.used
    else { return false }
    learn(max(carried * Self.keep, Self.least), at: now)
    return true
  }

  /// Raises the rate, which has shown no queue for a while, towards what the paths could use.
  public mutating func grow(to wanted: DataRate, at now: Instant) {
    defer { grownAt = now }
    guard let rate, let learnt, let grownAt, rate < wanted else { return }
    let growing = now - learnt.at - hold
    guard growing > .zero else { return }
    let doublings = min(growing / Self.growth.doubling, 10)
    let factor = (0..<Int(doublings)).reduce(Self.growth.start) { factor, _ in factor + factor }
    let seconds = min((now - grownAt).inSeconds, 1)
    self.rate = rate * (1 + min(factor, Self.growth.most) * seconds)
  }

  /// Lets the rate rise soon, since packets may now take another uplink.
  public mutating func pathsChanged() { hold = Self.holds.lowerBound }

  private mutating func learn(_ rate: DataRate, at now: Instant) {
    if let learnt {
      let isSimilar = Self.similar.contains(rate.kbps / max(learnt.rate.kbps, 1))
      hold = isSimilar ? min(hold + hold, Self.holds.upperBound) : Self.holds.lowerBound
    }
    self.rate = rate
    learnt = (rate, now)
  }
}
