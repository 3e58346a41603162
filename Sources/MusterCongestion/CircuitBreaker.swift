import MusterBase

/// Ends the video on a path that stays overloaded, whatever the estimate says: a safeguard for the
/// network, should the estimator be wrong (RFC 8083). Audio goes on, as its users can hang up.
struct CircuitBreaker: Sendable {
  /// The multiple of what TCP would send that is too much (RFC 8083 section 4.3), the interval over
  /// which the rate and the loss are measured, and the number of intervals in succession.
  static let excess = 10.0
  static let interval = Duration.seconds(5)
  static let intervals = 3
  /// The time without reports on packets that ask for them.
  static let timeout = Duration.seconds(10)
  /// The time after which the next report shows that the path may be tried again.
  static let pause = Duration.seconds(30)

  /// The time at which it opened; nil while video may be sent.
  private(set) var openedAt: Instant?

  private var intervalStart: Instant?
  private var packets = 0
  private var lostPackets = 0
  private var bytes = 0
  /// The number of intervals in succession with too much.
  private var exceeded = 0

  /// Takes a silence of this length.
  mutating func silent(for time: Duration, at now: Instant) {
    if time >= Self.timeout { openedAt = openedAt ?? now }
  }

  /// Takes the news in a report.
  mutating func reported(_ results: [PacketResult], roundTrip: Duration, at now: Instant) {
    var (packets, lost, bytes) = (0, 0, 0)
    for packet in results {
      switch packet.fate {
      case .arrivedLate:
        lost -= 1
        continue
      case .lost: lost += 1
      case .arrived: break
      }
      packets += 1
      bytes += packet.bytes
    }
    count(packets: packets, lost: lost, bytes: bytes, roundTrip: roundTrip, at: now)
  }

  /// Counts the packets that a report is about.
  mutating func count(
    packets: Int, lost: Int, bytes: Int, roundTrip: Duration, at now: Instant
  ) {
    let start = intervalStart ?? now
    intervalStart = start
    self.packets += packets
    lostPackets += lost
    self.bytes += bytes
    guard now - start >= Self.interval else { return }
    exceeded = isTooMuch(over: now - start, roundTrip: roundTrip) ? exceeded + 1 : 0
    (intervalStart, self.packets, lostPackets, self.bytes) = (now, 0, 0, 0)
    if exceeded >= Self.intervals { openedAt = openedAt ?? now }
  }

  /// Whether the path is to be tried again, now that a report has come.
  func isOver(at now: Instant) -> Bool { openedAt.map { now - $0 >= Self.pause } ?? false }

  /// Whether the interval had more than `excess` times the rate of a TCP connection with the same
  /// packets, losses and round trip, by the equation of Mathis et al. (1997).
  private func isTooMuch(over time: Duration, roundTrip: Duration) -> Bool {
    guard packets > 0, lostPackets > 0, roundTrip > .zero else { return false }
    let loss = Double(lostPackets) / Double(packets)
    let fair = Double(bytes) / Double(packets) / (loss * 2 / 3).squareRoot()
    return DataRate(bytes: Double(bytes), over: time)
      > DataRate(bytes: fair, over: roundTrip) * Self.excess
  }
}
