import MusterBase

/// Lowers the rate while packets are sent that ask for feedback, and none comes.
struct Silence: Sendable {
  /// The round trip, silence included, beyond which the rate falls by `decrease` each `interval`.
  static let limit = Duration.seconds(3)
  static let interval = Duration.seconds(1)
  static let decrease = 0.8

  /// The time of the first packet that asks for feedback since the last report.
  private var since: Instant?
  private var lastAskedAt: Instant?
  private var roundTrip = Duration.zero
  private var decreasedAt: Instant?

  /// Counts a packet that asks for feedback. Returns whether the rate falls; a sender that pauses
  /// asks for nothing, and keeps its rate.
  mutating func asked(at now: Instant) -> Bool {
    let isPaused = lastAskedAt.map { now - $0 > Self.limit } ?? false
    let since = isPaused ? now : since ?? now
    (self.since, lastAskedAt) = (since, now)
    let due = decreasedAt.map { $0 + Self.interval } ?? (since + (Self.limit - roundTrip))
    guard now > due else { return false }
    decreasedAt = now
    return true
  }

  /// The time since the first packet that asked for feedback after the last report.
  func duration(at now: Instant) -> Duration { since.map { now - $0 } ?? .zero }

  /// Takes a report with this round trip; packets may still be unreported, but the path works.
  mutating func reported(roundTrip: Duration?) {
    self.roundTrip = min(roundTrip ?? self.roundTrip, Self.limit)
    (since, decreasedAt) = (nil, nil)
  }
}
