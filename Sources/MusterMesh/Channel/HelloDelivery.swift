import MusterBase

/// When the newest own hello goes to one peer: at once, until acknowledged, and now and then.
struct HelloDelivery: Sendable {
  /// A lost hello must be noticed within the second that a clean leave may take to show.
  static let firstRetry = Duration.milliseconds(250)
  static let longestRetry = Duration.seconds(1)
  /// Brings back what a peer forgot, as when it left the channel and joined it again.
  static let refresh = Duration.seconds(5)

  private(set) var isAcknowledged = false
  private(set) var nextAt: Instant?
  private var retry = firstRetry

  /// A new hello was just sent.
  init(sentAt now: Instant) { nextAt = now + retry }

  /// The same hello was just sent again.
  mutating func resent(at now: Instant) {
    if !isAcknowledged { retry = min(retry * 2, Self.longestRetry) }
    nextAt = now + (isAcknowledged ? Self.refresh : retry)
  }

  /// The peer has it; after the last word there is nothing to refresh.
  mutating func acknowledged(at now: Instant, isLast: Bool) {
    guard !isAcknowledged else { return }
    isAcknowledged = true
    nextAt = isLast ? nil : now + Self.refresh
  }
}
