import MusterBase

/// The times at which feedback about one session is sent.
///
/// The delay controller needs a report about every 50 to 100 ms while video flows; with audio alone
/// there is less to control and less to pay with. All reports together have at most `share` of the
/// bytes that they report on.
struct FeedbackSchedule: Equatable, Sendable {
  static let videoInterval = Duration.milliseconds(100)
  static let audioInterval = Duration.milliseconds(250)
  /// The time for which the first packets after a pause are collected.
  static let firstWait = Duration.milliseconds(50)
  /// The minimum interval, between reports that a gap or a rise in delay calls for.
  static let urgentInterval = Duration.milliseconds(25)
  /// The interval of reports that `share` does not allow, so that a sender of very little still
  /// learns of the path.
  static let slowInterval = Duration.seconds(1)
  /// The time by which a report on video may go before it is due, along with another link's: a node
  /// with many links then wakes up once for all their reports.
  static let earliness = Duration.milliseconds(20)
  static let share = 0.05
  /// The bytes that may be saved up, for several urgent reports in a row, or for the longest one: a
  /// report that could never be saved up for would be followed by others as long.
  static let savings = 1300.0

  /// The bytes that reports may still have.
  private var credit = savings / 2
  /// The size of the last report in bytes, which the next one is assumed to have.
  private var cost = 100.0
  private var lastAt: Instant?
  /// The arrival of the first packet that asked for feedback since the last report.
  private var askedAt: Instant?
  private var hasVideo = false
  private var isUrgent = false

  /// The time of the next report; nil if no packet asks for one.
  var deadline: Instant? {
    guard let askedAt else { return nil }
    let earliest = isUrgent ? askedAt : askedAt + Self.firstWait
    return lastAt.map { max(earliest, $0 + interval) } ?? earliest
  }

  /// Whether a report is due, or may go now along with another's. One that is brought forward, or
  /// that `share` does not allow, waits for its time.
  func allows(at now: Instant) -> Bool {
    guard let deadline else { return false }
    let mayBeEarly = interval == Self.videoInterval
    return deadline <= (mayBeEarly ? now + Self.earliness : now)
  }

  private var interval: Duration {
    if credit < cost { return Self.slowInterval }
    if isUrgent { return Self.urgentInterval }
    return hasVideo ? Self.videoInterval : Self.audioInterval
  }

  /// Counts a packet of this many bytes that asks for feedback.
  mutating func asked(bytes: Int, isVideo: Bool, at now: Instant) {
    askedAt = askedAt ?? now
    hasVideo = hasVideo || isVideo
    credit = min(credit + Double(bytes) * Self.share, Self.savings)
  }

  /// Brings the next report forward after a gap or a rise in delay.
  mutating func hurry() { isUrgent = true }

  /// Counts a report of this many bytes. One that is larger than assumed, or that `share` does not
  /// allow, leaves a debt, which is bounded since a sender of very little could never pay it.
  mutating func reported(bytes: Int, at now: Instant) {
    cost = Double(bytes)
    credit = max(credit - cost, -Self.savings)
    lastAt = now
    (askedAt, hasVideo, isUrgent) = (nil, false, false)
  }
}
