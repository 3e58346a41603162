import MusterBase

/// The bandwidth and the queueing delay of a path.
public struct PathEstimate: Equatable, Sendable {
  /// The estimate, counted in IP packets.
  public var rate: DataRate
  /// The queueing delay of the last reported packets.
  public var queueDelay: Duration

  public init(rate: DataRate, queueDelay: Duration) {
    self.rate = rate
    self.queueDelay = queueDelay
  }
}

/// The sending end of congestion control on one path: estimates the path's bandwidth and its
/// queueing delay from feedback, with the algorithms of Google Congestion Control as WebRTC has
/// them.
///
/// The path may be shared by several sessions; all of them report their packets here, and the
/// reports on them.
public struct PathController: Sendable {
  /// The limits and the start of the estimate.
  public static let limits = DataRate(kbps: 10)...DataRate(kbps: 100_000)
  public static let start = DataRate(kbps: 300)
  /// The share of the acknowledged rate below which no probe result lowers the estimate.
  private static let probeFloor = 0.85
  /// The queueing delay and the loss that together show that the queue is full.
  private static let fullQueue = (delay: Duration.milliseconds(100), loss: 0.02)
  /// The queueing delay up to which losses are not those of a full queue.
  private static let shortQueue = Duration.milliseconds(50)
  /// The rate for the pacer, in multiples of the estimate, where packets are lost without a queue.
  /// Retransmissions leave before video, and come in bursts: at the estimate itself, the frames
  /// behind them would wait for too long and be left out, although there is room for them before
  /// long.
  private static let lossyPacing = 2.0
  /// The loss of one report, on this many packets or more, that shows as much by itself: where the
  /// first packets already fill the queue, its delay is not noticed.
  private static let overload = (loss: 0.5, packets: 100)
  /// The time in which nothing arrives that shows the path to have been interrupted: a path that is
  /// too narrow loses most, but not all.
  private static let interruption = Duration.milliseconds(500)

  /// The bandwidth of the path, as far as it is known.
  public private(set) var estimate = start
  /// The round trip of the last report, without the time for which the receiver held it back; nil
  /// before the first.
  public private(set) var roundTrip: Duration?
  /// The rate that the application could use. The path is probed as long as the estimate is lower.
  public var demand = DataRate.zero
  /// Whether packets on other paths of this node may wait in the same queue: what is learnt of the
  /// uplink then empties it, whereas all paths together would send too little.
  public var mayShareQueue = false

  private var audioQueue = AudioQueue()
  private var queue = QueueDelay()
  private var standingQueue = StandingQueue()
  private var acknowledged = AcknowledgedRate()
  private var limit = ApplicationLimit()
  /// The time at which the application last was no longer limited.
  private var limitEndedAt: Instant?
  private var delay = DelayEstimator(start: Self.start, limits: Self.limits)
  private var loss = LossEstimator(least: limits.lowerBound)
  private var inFlight = InFlight()
  private var silence = Silence()
  private var breaker = CircuitBreaker()
  private var probes = ProbeEstimator()
  private var prober = ProbeController()

  /// Creates the controller of a path without packets.
  public init() {}

  /// The queueing delay of the last reported packets; nil before the first report.
  public var queueDelay: Duration? { queue.mean }
  /// The time that the fastest packet of the last minute or less took, on the clocks of both ends;
  /// nil before the first report.
  public var leastTransit: Duration? { queue.base }
  /// The time at which the first packet was sent of those that have waited, one and all, until the
  /// last report; nil if they have not.
  public var queuesSince: Instant? { standingQueue.since }
  /// The time at which the last reported packet was sent; nil before the first report.
  public private(set) var reportedUntil: Instant?
  /// Whether the queue that the path left when it became narrower is drained.
  public var isDraining: Bool { standingQueue.isDraining }
  /// Whether the queue of the path grows.
  public var isOverused: Bool { delay.trend == .growing }
  /// What the reports show; nil before the first.
  public var measured: PathEstimate? {
    queueDelay.map { PathEstimate(rate: estimate, queueDelay: $0) }
  }
  /// The rate at which packets arrive; nil while few do.
  public var acknowledgedRate: DataRate? { acknowledged.rate }
  /// The share of the bytes that are lost, over the last seconds, although they do not wait in a
  /// queue; 0 while they do, as it may be the queue that drops them.
  public var lossWithoutQueue: Double {
    queue.mean.map { $0 <= Self.shortQueue } ?? false ? loss.averageLoss : 0
  }

  /// The rate for the path's pacer: how fast packets leave one after the other, whereas the bitrate
  /// of the video follows from the estimate. Both are the same unless losses limit the estimate,
  /// although packets do not wait in a queue, and it is higher then, up to what the delays allow;
  /// or unless a queue has to drain.
  public var pacingRate: DataRate {
    if let rate = standingQueue.drainRate { return min(rate, estimate) }
    guard lossWithoutQueue > LossEstimator.tolerated else { return estimate }
    return max(estimate, min(estimate * Self.lossyPacing, delay.rate))
  }

  /// Whether the first probes have yet to show what the path carries.
  public func isStarting(at now: Instant) -> Bool { admitsVideo && prober.isStarting(at: now) }
  /// Whether the circuit breaker has not ended the video.
  public var admitsVideo: Bool { breaker.openedAt == nil }
  /// Whether the application sends much less than the estimate.
  public var isApplicationLimited: Bool { limit.since != nil }

  /// The time for which new packets should wait, since too many are in flight: the path has become
  /// narrower than the last report showed.
  public func excessInFlight(at now: Instant) -> Duration {
    roundTrip.map { inFlight.excess(at: estimate, roundTrip: $0, now: now) } ?? .zero
  }

  /// Counts a packet; `asks` says whether its payload asks for feedback. Returns whether the
  /// estimate falls, since feedback is overdue.
  @discardableResult
  public mutating func sent(bytes: Int, asks: Bool, at now: Instant) -> Bool {
    let wasLimited = isApplicationLimited
    limit.sent(bytes: bytes, estimate: estimate, at: now)
    if wasLimited, !isApplicationLimited { limitEndedAt = now }
    inFlight.sent(bytes, at: now)
    standingQueue.expire(at: now)
    guard asks, let factor = silence.asked(at: now) else { return false }
    delay.set(estimate * factor, at: now)
    breaker.silent(for: silence.duration(at: now), at: now)
    updateEstimate()
    return true
  }

  /// Lowers an estimate that is higher than what the path may get.
  public mutating func limit(to rate: DataRate, at now: Instant) {
    guard estimate > rate else { return }
    delay.set(rate, at: now)
    updateEstimate()
  }

  /// Raises an estimate that is lower than what the path is known to carry.
  public mutating func raise(to rate: DataRate, at now: Instant) {
    guard estimate < rate else { return }
    delay.set(max(rate, delay.rate), at: now)
    loss.probed(rate)
    updateEstimate()
  }

  /// Takes the news about the path in a report. Returns the probe cluster to send now.
  public mutating func reported(_ report: PathReport, at now: Instant) -> ProbeCluster? {
    if breaker.isOver(at: now) { beginAnew() }
    silence.reported(roundTrip: report.roundTrip)
    if let last = report.results.last {
      inFlight.reported(until: last.sentAt)
      reportedUntil = last.sentAt
    }
    roundTrip = report.roundTrip ?? roundTrip
    let arrivals = report.results.filter { $0.arrivedAt != nil }.sorted(by: Self.isEarlier)
    audioQueue.update(arrivals, at: now)
    let delayed = audioQueue.delayed(arrivals, at: now)
    queue.update(delayed, at: now)
    var probe: DataRate?
    for (index, packet) in arrivals.enumerated() {
      guard let arrivedAt = packet.arrivedAt else { continue }
      acknowledged.add(
        bytes: packet.bytes, sentAt: packet.sentAt, arrivedAt: arrivedAt,
        isAfterGap: index == 0 && report.isAfterGap)
      probe = probes.add(packet) ?? probe
    }
    let carried = drain(report, at: now)
    let acknowledged = acknowledged.rate.map { min($0, carried ?? $0) }
    if let result = probe, let acknowledged {
      probe = max(result, min(delay.rate, acknowledged * Self.probeFloor))
    }
    let hasRecovered = delay.update(
      delayed, isFull: isQueueFull || isOverloaded(report),
      isDraining: standingQueue.isDraining, acknowledged: acknowledged, probe: probe,
      roundTrip: roundTrip ?? .zero, at: now)
    if let probe { loss.probed(probe) }
    loss.update(
      report.results, delayEstimate: delay.rate, acknowledged: acknowledged,
      isApplicationLimited: isApplicationLimited)
    breaker.reported(report.results, roundTrip: roundTrip ?? .zero, at: now)
    updateEstimate()
    return nextProbe(hasRecovered: hasRecovered, at: now)
  }

  /// The packets of a report whose delay shows the queue in which video waits.
  public func delayed(_ report: PathReport, at now: Instant) -> [PacketResult] {
    audioQueue.delayed(report.results, at: now)
  }

  /// Lowers the rate at once if the path has become narrower, so that its queue drains. Returns
  /// what it then carries.
  private mutating func drain(_ report: PathReport, at now: Instant) -> DataRate? {
    // Before the path has carried something for a while, nothing is known of its queue.
    guard let used = acknowledged.rate else { return nil }
    let action = standingQueue.update(
      delayed(report, at: now), base: queue.base ?? .zero, queue: queue.shortest,
      rate: min(used, estimate), estimate: delay.rate, mayBeShared: mayShareQueue, at: now)
    switch action {
    case .carries(let rate):
      delay.found(capacity: rate, at: now)
      return rate
    case .restore(let rate):
      delay.restore(rate, at: now)
      return nil
    case nil: return nil
    }
  }

  /// Whether the queue drops packets: its delay is long, and no longer grows. The losses have to
  /// last, since those that a TCP flow causes end when it has slowed down, after a round trip.
  private var isQueueFull: Bool {
    queue.shortest > Self.fullQueue.delay && loss.lastingLoss > Self.fullQueue.loss
  }

  /// Whether a report shows most of many packets to be lost, interruptions apart.
  private func isOverloaded(_ report: PathReport) -> Bool {
    guard report.results.count >= Self.overload.packets else { return false }
    let runs = report.results.split { $0.fate != .lost }
    let lost = runs.reduce(0) { $0 + $1.count }
    let interrupted = runs.filter(Self.isInterruption).reduce(0) { $0 + $1.count }
    let packets = report.results.count - interrupted
    return packets >= Self.overload.packets
      && Double(lost - interrupted) > Self.overload.loss * Double(packets)
  }

  private static func isInterruption(_ lost: ArraySlice<PacketResult>) -> Bool {
    guard let first = lost.first, let last = lost.last else { return false }
    return last.sentAt - first.sentAt >= interruption
  }

  /// Forgets what the reports have shown of the path, after it was overloaded.
  private mutating func beginAnew() {
    let (demand, mayShareQueue) = (demand, mayShareQueue)
    self = PathController()
    (self.demand, self.mayShareQueue) = (demand, mayShareQueue)
  }

  private mutating func updateEstimate() {
    guard admitsVideo else { return estimate = Self.limits.lowerBound }
    let lossLimit = loss.limit ?? delay.rate
    estimate = max(min(delay.rate, lossLimit), Self.limits.lowerBound)
  }

  private mutating func nextProbe(hasRecovered: Bool, at now: Instant) -> ProbeCluster? {
    guard admitsVideo else { return nil }
    let cause: ProbeController.Cause =
      if delay.trend != .steady || loss.state == .decreasing && loss.isLossy {
        .congestion
      } else if loss.state != .delayLimited { .loss } else { .nothing }
    let wasLimited = limitEndedAt.map { now - $0 < ProbeController.limitEndedWindow } ?? false
    let cluster = prober.next(
      estimate: estimate, demand: demand, cause: cause, recovered: hasRecovered,
      isApplicationLimited: isApplicationLimited || wasLimited, at: now)
    if let cluster { probes.began(cluster) }
    return cluster
  }

  private static func isEarlier(_ a: PacketResult, _ b: PacketResult) -> Bool {
    guard let first = a.arrivedAt, let second = b.arrivedAt else { return false }
    return first < second
  }
}
