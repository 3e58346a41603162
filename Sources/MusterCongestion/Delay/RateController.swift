import MusterBase

/// Raises the rate until the queue grows, and then lowers it below what arrives ("AIMD rate
/// control" in WebRTC): by a share a second while the path's capacity is unknown, and by about a
/// packet per round trip once the rate is near to it.
package struct RateController: Sendable {
  /// The share of the acknowledged rate that remains when the queue grows, and what is taken off
  /// that to drain the queue.
  static let decrease = 0.85
  static let drain = DataRate(kbps: 5)
  /// The share by which the rate grows per second while the capacity is unknown.
  static let increase = 0.08
  /// The rate grows up to this many times the acknowledged rate, plus `headroom`: what arrives does
  /// not show more (beyond it, a sender of little would believe anything).
  static let mostOfAcknowledged = 1.5
  static let headroom = DataRate(kbps: 10)
  /// A rate below this share of the acknowledged rate is raised to that.
  static let leastOfAcknowledged = 0.75
  /// The least growth per second.
  static let leastStep = DataRate(kbps: 4)
  /// The time in which a growing queue is the effect of a probe that raised the rate: until the
  /// application sends more, the queue grows, and reports show it.
  static let probeEffect = Duration.milliseconds(1_500)
  /// The time for which a restored rate holds: that of the acknowledged rate, and of a round trip
  /// through a full queue and back.
  static let restoredTime = Duration.seconds(3)
  /// The size of the packets and the number of frames per second that the additive growth assumes.
  private static let packetBytes = 1_200.0
  private static let framesPerSecond = 30.0
  /// The limits of the time between two decreases, which is the round trip.
  private static let pause = Duration.milliseconds(10)...Duration.milliseconds(200)

  private enum Phase {
    case hold
    case increase
    case decrease
  }

  /// The limits of the rate.
  let limits: ClosedRange<DataRate>
  package private(set) var rate: DataRate
  private var phase = Phase.hold
  private var capacity = LinkCapacity()
  private var changedAt: Instant?
  /// The rate before the last probe raised it, and the time of that.
  private var probed: (from: DataRate, at: Instant)?
  /// The rate that was restored last, and the time of that.
  private var restored: (rate: DataRate, at: Instant)?

  /// Starts with a rate.
  package init(start: DataRate, limits: ClosedRange<DataRate>) {
    self.limits = limits
    rate = start
  }

  /// Takes a measured rate, such as the result of a probe.
  package mutating func set(_ rate: DataRate, at now: Instant) {
    if rate > self.rate { probed = (self.rate, now) }
    self.rate = clamped(rate)
    changedAt = now
  }

  /// Lowers the rate at once below what the path is found to carry, however recent the last change
  /// is.
  mutating func found(capacity rate: DataRate, at now: Instant) {
    (probed, restored) = (nil, nil)
    lower(acknowledged: rate, at: now)
  }

  /// Returns to a rate that was given up in vain, and holds it until reports show what it does.
  mutating func restore(_ rate: DataRate, at now: Instant) {
    guard rate > self.rate else { return }
    self.rate = clamped(rate)
    restored = (rate, now)
    changedAt = now
  }

  /// Whether a growing queue is a reason to lower the rate again: a lower rate shows its effect
  /// after a round trip.
  func mayDecrease(acknowledged: DataRate?, roundTrip: Duration, at now: Instant) -> Bool {
    guard let changedAt else { return true }
    if now - changedAt >= min(max(roundTrip, Self.pause.lowerBound), Self.pause.upperBound) {
      return true
    }
    return acknowledged.map { $0 < rate * 0.5 } ?? false
  }

  /// Adjusts the rate to the trend of the queue. While it `isDraining`, more arrives than is sent.
  package mutating func update(
    _ trend: QueueTrend, acknowledged: DataRate?, isDraining: Bool = false, roundTrip: Duration,
    at now: Instant
  ) {
    switch trend {
    case .steady:
      if phase == .hold {
        phase = .increase
        changedAt = now
      }
    case .growing: phase = .decrease
    case .shrinking: phase = .hold
    }
    switch phase {
    case .hold: break
    case .increase: raise(acknowledged: acknowledged, roundTrip: roundTrip, at: now)
    case .decrease: lower(acknowledged: acknowledged ?? rate, at: now)
    }
    // What arrives is no estimate but a fact. It exceeds the rate by this much only if the sender
    // does not keep to it; while a queue drains, it may exceed it by less.
    if !isDraining, let acknowledged, rate < acknowledged * Self.leastOfAcknowledged {
      rate = clamped(acknowledged)
    }
  }

  private mutating func raise(acknowledged: DataRate?, roundTrip: Duration, at now: Instant) {
    let arriving = acknowledged ?? rate
    if capacity.isBelow(arriving) { capacity = LinkCapacity() }
    let limit = arriving * Self.mostOfAcknowledged + Self.headroom
    let elapsed = changedAt.map { min(now - $0, .seconds(1)) } ?? .zero
    changedAt = now
    if rate < limit { rate = clamped(min(rate + growth(in: elapsed, roundTrip: roundTrip), limit)) }
  }

  private func growth(in time: Duration, roundTrip: Duration) -> DataRate {
    guard capacity.rate != nil else {
      return max(rate * (Self.increase * time.inSeconds), DataRate(kbps: 1))
    }
    // Half a packet per response time of the control loop.
    let frame = rate.bytes(in: .seconds(1)) / Self.framesPerSecond
    let packet = frame / (frame / Self.packetBytes).rounded(.up)
    let response = roundTrip + .milliseconds(100)
    let perSecond = max(DataRate(bytes: packet / 2, over: response), Self.leastStep)
    return perSecond * time.inSeconds
  }

  private mutating func lower(acknowledged: DataRate, at now: Instant) {
    var lower = acknowledged * Self.decrease
    if lower > Self.drain { lower = lower - Self.drain }
    // The burst that fills the queue may arrive faster than the path's capacity.
    if lower > rate, let known = capacity.rate { lower = known * Self.decrease }
    // The queue did not grow before the probe, so the rate falls no lower than it was: where
    // something else fills the queue, each probe would end below its start.
    if let probed, now - probed.at < Self.probeEffect { lower = max(lower, probed.from) }
    probed = nil
    if let restored, now - restored.at < Self.restoredTime { lower = max(lower, restored.rate) }
    if lower < rate { rate = clamped(lower) }
    if capacity.isAbove(acknowledged) { capacity = LinkCapacity() }
    capacity.found(acknowledged)
    phase = .hold
    changedAt = now
  }

  private func clamped(_ rate: DataRate) -> DataRate {
    min(max(rate, limits.lowerBound), limits.upperBound)
  }
}
