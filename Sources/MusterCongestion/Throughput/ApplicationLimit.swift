import MusterBase

/// Finds out whether the application sends much less than the estimate, so that what arrives says
/// little about what could ("ALR detector" in WebRTC).
struct ApplicationLimit: Sendable {
  /// The share of the estimate that counts as all of it.
  static let share = 0.8
  /// The time over which unused bytes add up.
  static let window = Duration.milliseconds(500)
  /// The shares of the window's bytes that are unused when the application becomes limited, and
  /// overdrawn when it no longer is.
  static let enter = 0.4
  static let leave = -0.6

  /// The bytes that the application could have sent but did not.
  private var unused = 0.0
  private var updatedAt: Instant?
  /// The time since which the application is limited; nil if it is not.
  private(set) var since: Instant?

  /// Counts a packet of this many bytes, with the estimate at that time.
  mutating func sent(bytes: Int, estimate: DataRate, at now: Instant) {
    let rate = estimate * Self.share
    let most = rate.bytes(in: Self.window)
    let elapsed = updatedAt.map { now - $0 } ?? .zero
    updatedAt = now
    unused = min(unused + rate.bytes(in: elapsed), most)
    unused = max(unused - Double(bytes), -most)
    if since == nil, unused > Self.enter * most {
      since = now
    } else if since != nil, unused < Self.leave * most {
      since = nil
    }
  }
}
