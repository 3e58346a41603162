import MusterBase

/// Estimates the bandwidth of a path from the delay of its packets, which grows as soon as more is
/// sent than the path carries, and before anything is lost ("delay-based BWE" in WebRTC).
struct DelayEstimator: Sendable {
  /// The time without packets after which what was measured before means nothing.
  static let timeout = Duration.seconds(2)
  /// The share of the rate that remains when the queue grows before anything has been acknowledged.
  private static let blindDecrease = 0.5

  private var groups = PacketGroups()
  private var detector = TrendDetector()
  private var controller: RateController
  private var lastAt: Instant?
  private var hasAcknowledged = false

  /// Starts with a rate.
  init(start: DataRate, limits: ClosedRange<DataRate>) {
    controller = RateController(start: start, limits: limits)
  }

  /// The estimate.
  var rate: DataRate { controller.rate }
  /// The trend of the path's queue.
  private(set) var trend = QueueTrend.steady

  /// Takes a lower rate, since nothing is heard from the path.
  mutating func set(_ rate: DataRate, at now: Instant) { controller.set(rate, at: now) }

  /// Lowers the rate below what the path is found to carry.
  mutating func found(capacity: DataRate, at now: Instant) {
    controller.found(capacity: capacity, at: now)
  }

  /// Returns to a rate that was given up in vain.
  mutating func restore(_ rate: DataRate, at now: Instant) { controller.restore(rate, at: now) }

  /// Takes the packets of a report in the order of arrival, the acknowledged rate, and the result
  /// of a probe if there is one. A queue that `isFull` grows no more, and yet calls for a lower
  /// rate; while it `isDraining`, the rate stays below what arrives. Returns whether the queue,
  /// which had to drain, is steady again.
  mutating func update(
    _ arrivals: [PacketResult], isFull: Bool, isDraining: Bool, acknowledged: DataRate?,
    probe: DataRate?, roundTrip: Duration, at now: Instant
  ) -> Bool {
    if let lastAt, now - lastAt > Self.timeout {
      (groups, detector) = (PacketGroups(), TrendDetector())
    }
    lastAt = now
    hasAcknowledged = hasAcknowledged || acknowledged != nil
    let before = trend
    for packet in arrivals {
      guard let arrivedAt = packet.arrivedAt,
        let interval = groups.add(sentAt: packet.sentAt, arrivedAt: arrivedAt)
      else { continue }
      detector.add(interval)
    }
    trend = isFull ? .growing : detector.trend
    switch trend {
    case .growing:
      guard controller.mayDecrease(acknowledged: acknowledged, roundTrip: roundTrip, at: now) else {
        break
      }
      if acknowledged != nil {
        controller.update(
          .growing, acknowledged: acknowledged, isDraining: isDraining, roundTrip: roundTrip,
          at: now)
      } else if !hasAcknowledged {
        controller.set(rate * Self.blindDecrease, at: now)
      }
    case .steady, .shrinking:
      if let probe {
        controller.set(probe, at: now)
      } else {
        controller.update(
          trend, acknowledged: acknowledged, isDraining: isDraining, roundTrip: roundTrip, at: now)
      }
    }
    return before == .shrinking && trend == .steady
  }
}
