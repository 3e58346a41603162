import MusterBase

/// Finds the queue that is left when a path becomes narrower, and drains it: as long as it stands,
/// all packets are late, and those beyond its limit are lost, audio and video alike.
///
/// Less is then sent than arrives, so that the queue shrinks. If it does not, other traffic
/// keeps it filled, which would get whatever this sender gives up: that is then undone, and the
/// trend of the queue alone decides until it has emptied.
package struct StandingQueue: Sendable {
  /// What to do with the rate.
  package enum Action: Equatable, Sendable {
    /// The path carries this much.
    case carries(DataRate)
    /// To send less was in vain: send this much again.
    case restore(DataRate)
  }

  /// The sending rate, in multiples of what arrives, that shows the path to be narrower.
  static let excess = 1.15
  /// A path that carries less than this share of the estimate has fallen deeply: the queue then
  /// fills within a tenth of a second, and reports on it wait in another one as long.
  static let deepFall = 0.7
  /// The shares of the path's rate that are sent while the queue drains: after a deep fall, and
  /// otherwise the less, the longer the queue is.
  static let deepShare = 0.3
  static let shares = 0.3...0.85
  /// The queueing delay at which the share would be 0.
  static let longQueue = Duration.milliseconds(200)
  /// The time in which a queue that is this sender's own shrinks by at least `shrinking`.
  static let patience = Duration.milliseconds(600)
  static let shrinking = Duration.milliseconds(60)
  /// A path that falls below this share while its queue drains may have fallen once more.
  static let furtherFall = 0.7
  static let mostFalls = 2
  /// The share of the rate before that is sent again beside other traffic.
  static let restored = 0.6
  /// The time without reports after which nothing is known of the queue.
  static let silence = Duration.seconds(1)
  /// The time for which other traffic, which has kept the queue filled, may come back.
  static let memory = Duration.seconds(10)

  private struct Drain: Sendable {
    let startedAt: Instant
    /// What the path carries.
    let rate: DataRate
    let isDeep: Bool
    let falls: Int
    /// The queueing delay as last reported.
    var queue: Duration
    /// The queueing delay of a packet that was sent since then, and the time of that.
    var mark: (queue: Duration, sentAt: Instant)?
  }

  private enum Phase: Sendable {
    case idle
    case draining(Drain)
    /// Other traffic keeps the queue filled.
    case competing
  }

  private var phase = Phase.idle
  private var path = BusyPath()
  /// The rate before the queue began to drain.
  private var rateBefore = DataRate.zero
  private var reportedAt = Instant.zero
  /// The last time at which other traffic kept the queue filled.
  private var competedAt: Instant?

  package init() {}

  /// The time at which it began, as `BusyPath` has it; nil if the queue is empty.
  package var since: Instant? { path.busySince }
  /// Whether the queue is being drained.
  package var isDraining: Bool { drainRate != nil }

  /// The rate at which to send while the queue drains; nil if it does not.
  package var drainRate: DataRate? {
    guard case .draining(let drain) = phase else { return nil }
    guard !drain.isDeep else { return drain.rate * Self.deepShare }
    let share = 1 - drain.queue / Self.longQueue
    return drain.rate * min(max(share, Self.shares.lowerBound), Self.shares.upperBound)
  }

  /// Takes the packets of a report in the order of sending. `base` is the least transit time,
  /// `queue` the least queueing delay of the report, `rate` what this sender has used, and
  /// `estimate` what it could. A queue that `mayBeShared` is not drained.
  package mutating func update(
    _ results: [PacketResult], base: Duration, queue: Duration, rate: DataRate, estimate: DataRate,
    mayBeShared: Bool, at now: Instant
  ) -> Action? {
    reportedAt = now
    path.add(results, base: base)
    guard path.busySince != nil else {
      phase = .idle
      return nil
    }
    switch phase {
    case .competing:
      competedAt = now
      return nil
    case .idle:
      let competed = competedAt.map { now - $0 < Self.memory } ?? false
      guard !mayBeShared, !competed, let rates = path.rates,
        rates.sending > rates.arriving * Self.excess
      else { return nil }
      rateBefore = rate
      return drain(
        Drain(
          startedAt: now, rate: rates.arriving, isDeep: rates.arriving < estimate * Self.deepFall,
          falls: 1, queue: queue))
    case .draining(var drain):
      drain.queue = queue
      let hasShrunk = Self.hasShrunk(&drain, results, base: base)
      phase = .draining(drain)
      guard !hasShrunk else { return nil }
      if drain.falls < Self.mostFalls, let rates = path.rates,
        rates.arriving < drain.rate * Self.furtherFall,
        rates.sending > rates.arriving * Self.excess
      {
        return self.drain(
          Drain(
            startedAt: now, rate: rates.arriving, isDeep: true, falls: drain.falls + 1,
            queue: queue))
      }
      phase = .competing
      competedAt = now
      return .restore(rateBefore * Self.restored)
    }
  }

  /// Ends a drain of which there are no reports any more.
  package mutating func expire(at now: Instant) {
    if isDraining, now - reportedAt > Self.silence { (phase, path) = (.idle, BusyPath()) }
  }

  private mutating func drain(_ drain: Drain) -> Action {
    phase = .draining(drain)
    path.restart(at: drain.startedAt)
    return .carries(drain.rate)
  }

  /// Whether the queue shrinks, as far as can be told yet.
  private static func hasShrunk(
    _ drain: inout Drain, _ results: [PacketResult], base: Duration
  ) -> Bool {
    for packet in results where packet.sentAt > drain.startedAt {
      guard let arrivedAt = packet.arrivedAt else { continue }
      let queue = arrivedAt - packet.sentAt - base
      guard let mark = drain.mark else {
        drain.mark = (queue, packet.sentAt)
        continue
      }
      guard packet.sentAt - mark.sentAt > patience else { continue }
      guard mark.queue - queue > shrinking else { return false }
      drain.mark = (queue, packet.sentAt)
    }
    return true
  }
}
