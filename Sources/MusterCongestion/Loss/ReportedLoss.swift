import MusterBase

/// What a receiver report says about the packets since the one before.
public struct Reception: Equatable, Sendable {
  /// The number of packets that the receiver expected.
  public var expected: Int
  /// How many of them did not arrive.
  public var lost: Int

  public init(expected: Int, lost: Int) {
    self.expected = expected
    self.lost = lost
  }
}

/// Holds the video to a peer that gives no congestion feedback by its receiver reports, by the
/// loss-based controller of Google Congestion Control (draft-ietf-rmcat-gcc-02 section 6), with the
/// circuit breaker.
///
/// Nothing limits the video before the first losses, since such reports show neither bandwidth nor
/// delay.
public struct ReportedLoss: Sendable {
  /// The losses above which the rate falls, and below which it rises again.
  static let high = 0.1
  static let low = 0.02
  /// The growth in each second with few losses.
  static let growth = 0.08
  /// The least time over which losses are measured.
  static let interval = Duration.milliseconds(900)
  /// The lowest limit, and the one from which it rises after the circuit breaker.
  static let least = PathController.limits.lowerBound
  static let start = DataRate(kbps: 100)

  /// The rate for video; nil while nothing limits it.
  public private(set) var limit: DataRate?

  private var breaker = CircuitBreaker()
  private var reportedAt: Instant
  private var measuredAt: Instant
  private var reception = Reception(expected: 0, lost: 0)
  private var bytesBefore: UInt64 = 0

  /// Video to the peer begins now.
  public init(at now: Instant) { (reportedAt, measuredAt) = (now, now) }

  /// Whether the circuit breaker has not ended the video.
  public var admitsVideo: Bool { breaker.openedAt == nil }

  /// Takes the reports of one compound packet. `bytes` is the total of the video sent so far,
  /// `roundTrip` nil before the first measurement.
  public mutating func reported(
    _ reports: [Reception], bytes: UInt64, roundTrip: Duration?, at now: Instant
  ) {
    guard !reports.isEmpty else { return }
    reportedAt = now
    if breaker.isOver(at: now) {
      breaker = CircuitBreaker()
      limit = Self.start
    }
    for report in reports {
      reception.expected += report.expected
      reception.lost += report.lost
    }
    let time = now - measuredAt
    guard time >= Self.interval else { return }
    let sent = bytes &- bytesBefore
    if reception.expected > 0 {
      follow(
        loss: Double(reception.lost) / Double(reception.expected),
        rate: DataRate(bytes: Double(sent), over: time), for: time)
    }
    breaker.count(
      packets: reception.expected, lost: reception.lost, bytes: Int(clamping: sent),
      roundTrip: roundTrip ?? .zero, at: now)
    (measuredAt, bytesBefore, reception) = (now, bytes, Reception(expected: 0, lost: 0))
    if !admitsVideo { limit = .zero }
  }

  /// Ends the video if it has gone on without reports for too long.
  public mutating func waited(isSending: Bool, at now: Instant) {
    if !isSending, admitsVideo { reportedAt = max(reportedAt, now) }
    breaker.silent(for: now - reportedAt, at: now)
    if !admitsVideo { limit = .zero }
  }

  private mutating func follow(loss: Double, rate: DataRate, for time: Duration) {
    if loss > Self.high {
      let present = min(limit ?? rate, max(rate, Self.least))
      limit = max(present * (1 - loss / 2), Self.least)
    } else if loss < Self.low, let former = limit {
      let factor = 1 + Self.growth * min(time.inSeconds, 5)
      limit = min(former * factor, PathController.limits.upperBound)
    }
  }
}
