import MusterBase

/// Decides when to probe a path: at its start, while the results show more, after a large drop, and
/// for as long as the application wants more than the estimate.
package struct ProbeController: Sendable {
  /// The probe at the start, in multiples of the estimate. WebRTC also sends one at six times,
  /// which would fill the queue of a narrow path.
  static let first = 3.0
  /// The next probe, in multiples of the estimate, which is made if the result exceeds a share of
  /// the last one.
  static let further = 2.0
  static let success = 0.7
  /// The wait for a result.
  static let wait = Duration.seconds(1)
  /// No probe exceeds this rate, or this many times what the application wants.
  package static let most = DataRate(kbps: 30_000)
  static let mostOfDemand = 16.0
  /// The most, in multiples of the estimate, while losses limit it.
  static let lossLimited = 1.5
  /// A fall of the estimate below this share is a large drop; within `recoveryWindow` a path that
  /// has recovered is probed with a share of the old estimate.
  static let largeDrop = 0.66
  static let recovery = 0.85
  static let recoveryWindow = Duration.seconds(5)
  static let limitEndedWindow = Duration.seconds(3)
  /// The interval of probes for unmet demand; they cost about 1 % of the estimate.
  static let interval = Duration.seconds(3)
  /// The time in which the probes at the start are answered.
  static let startTime = Duration.milliseconds(500)

  /// What limits the estimate.
  package enum Cause: Equatable {
    case nothing
    /// The queue grows, or drains; nothing arrives; or losses lower the estimate.
    case congestion
    /// Losses limit the estimate, which grows.
    case loss
  }

  private var hasStarted = false
  /// The time of the first report.
  private var firstAt: Instant?
  private var nextID: ProbeCluster.ID = 1
  /// The estimate beyond which a pending result calls for a further probe.
  private var pending: (above: DataRate, since: Instant)?
  private var lastEstimate: DataRate?
  private var drop: (from: DataRate, at: Instant)?
  private var recoveredAt: Instant?
  private var probedAt: Instant?

  package init() {}

  /// Whether the probes at the start have yet to show what the path carries.
  package func isStarting(at now: Instant) -> Bool {
    firstAt.map { pending != nil && now - $0 < Self.startTime } ?? true
  }

  /// Takes the estimate after a report, and returns the cluster to send now. `recovered` says
  /// that the queue, which had to drain, is steady again; `isApplicationLimited` that the
  /// application sends, or sent until just now, much less than the estimate.
  package mutating func next(
    estimate: DataRate, demand: DataRate, cause: Cause, recovered: Bool,
    isApplicationLimited: Bool, at now: Instant
  ) -> ProbeCluster? {
    defer { lastEstimate = estimate }
    firstAt = firstAt ?? now
    if let lastEstimate, estimate < lastEstimate * Self.largeDrop { drop = (lastEstimate, now) }
    if let pending, now - pending.since > Self.wait { self.pending = nil }
    guard cause != .congestion, estimate < demand || pending != nil else { return nil }
    var most = min(Self.most, demand * Self.mostOfDemand)
    if cause == .loss { most = min(most, estimate * Self.lossLimited) }

    if !hasStarted {
      hasStarted = true
      return probe(estimate * Self.first, most: most, over: estimate, at: now)
    }
    if recovered, isApplicationLimited, let drop, now - drop.at < Self.recoveryWindow,
      recoveredAt.map({ now - $0 >= Self.recoveryWindow }) ?? true
    {
      recoveredAt = now
      return probe(drop.from * Self.recovery, most: most, over: estimate, at: now)
    }
    if let pending {
      guard estimate > pending.above else { return nil }
      return probe(estimate * Self.further, most: most, over: estimate, at: now)
    }
    guard let probedAt, now - probedAt >= Self.interval else { return nil }
    return probe(estimate * Self.further, most: most, over: estimate, at: now)
  }

  private mutating func probe(
    _ rate: DataRate, most: DataRate, over estimate: DataRate, at now: Instant
  ) -> ProbeCluster? {
    let rate = min(rate, most)
    probedAt = now
    guard rate > estimate else {
      pending = nil
      return nil
    }
    pending = (rate * Self.success, now)
    defer { nextID += 1 }
    return ProbeCluster(id: nextID, rate: rate)
  }
}
