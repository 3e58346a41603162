import MusterBase

/// Lowers the rate while packets are sent that ask for feedback, and none comes.
struct Silence: Sendable {
  /// By how much the rate falls, and when.
  private struct Rule {
    /// The round trip, silence included, beyond which the rate falls, and how often it does so.
    let limit: Duration
    let interval: Duration
    let factor: Double
  }

  private static let rule = Rule(limit: .seconds(3), interval: .seconds(1), factor: 0.8)
  /// Until `startReports` have come: it may be the first packets that fill the path, and with it
  /// that of the reports.
  private static let startRule = Rule(
    limit: .seconds(1), interval: .milliseconds(500), factor: 0.6)
  private static let startReports = 5

  /// The time of the first packet that asks for feedback since the last report.
  private var since: Instant?
  private var lastAskedAt: Instant?
  private var roundTrip = Duration.zero
  private var decreasedAt: Instant?
  private var reports = 0

  /// Counts a packet that asks for feedback. Returns the factor by which the rate falls now, if it
  /// does; a sender that pauses asks for nothing, and keeps its rate.
  mutating func asked(at now: Instant) -> Double? {
    let isPaused = lastAskedAt.map { now - $0 > Self.rule.limit } ?? false
    let since = isPaused ? now : since ?? now
    (self.since, lastAskedAt) = (since, now)
    let rule = reports < Self.startReports ? Self.startRule : Self.rule
    let due = decreasedAt.map { $0 + rule.interval } ?? (since + max(rule.limit - roundTrip, .zero))
    guard now > due else { return nil }
    decreasedAt = now
    return rule.factor
  }

  /// The time since the first packet that asked for feedback after the last report.
  func duration(at now: Instant) -> Duration { since.map { now - $0 } ?? .zero }

  /// Takes a report with this round trip; packets may still be unreported, but the path works.
  mutating func reported(roundTrip: Duration?) {
    self.roundTrip = min(roundTrip ?? self.roundTrip, Self.rule.limit)
    reports = min(reports + 1, Self.startReports)
    (since, decreasedAt) = (nil, nil)
  }
}
