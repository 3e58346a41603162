import MusterBase

/// The regularity of arrivals from a peer over one path, which determines the silence after which
/// the peer counts as late.
public struct PathLiveness: Equatable, Sendable {
  /// The time at which the last authentic datagram arrived over the path, or at which a link began
  /// to use the path.
  public private(set) var lastAt: Instant
  /// The smoothed interval between arrivals; a new interval has weight 1/8, like a round-trip
  /// sample in RFC 6298.
  private var gap = Duration.milliseconds(250)

  /// The time within which arrivals count as one burst, such as the packets of a frame.
  private static let burst = Duration.milliseconds(5)
  private static let longestGap = Duration.seconds(1)
  /// The bounds of the time allowed for three lost or late arrivals. Below the lower bound,
  /// scheduling delays and Wi-Fi retransmissions would count as loss; a time above the upper bound
  /// would be noticed in a call.
  private static let shortestPatience = Duration.milliseconds(120)
  private static let longestPatience = Duration.seconds(1)
  /// The minimum time to wait for the answer to a challenge, even if the round trip is short.
  private static let shortestAnswer = Duration.milliseconds(60)
  /// The assumed round trip of a path that has not been measured yet.
  private static let unmeasured = Duration.milliseconds(100)

  init(at now: Instant) { lastAt = now }

  mutating func heard(at now: Instant) {
    let sample = now - lastAt
    lastAt = now
    guard sample > Self.burst else { return }
    gap = gap * 0.875 + min(sample, Self.longestGap) * 0.125
  }

  /// Begins the use of the path by a link; nothing can arrive over the path before `instant`.
  mutating func restart(at instant: Instant) { lastAt = max(lastAt, instant) }

  /// Adopts the interval measured on another path to the same peer.
  mutating func adoptGap(of other: PathLiveness) { gap = other.gap }

  /// The time at which the peer counts as late and should be challenged; the peer may merely have
  /// nothing to send.
  public var lateAt: Instant {
    lastAt + min(max(gap * 3, Self.shortestPatience), Self.longestPatience)
  }

  /// The time at which the path counts as lost, because the challenge was not answered in time; a
  /// nil round trip has not been measured yet.
  public func lostAt(roundTrip: Duration?) -> Instant {
    lateAt + Self.answerTime(roundTrip: roundTrip)
  }

  /// The time to wait for the answer to a challenge.
  static func answerTime(roundTrip: Duration?) -> Duration {
    max(shortestAnswer, min((roundTrip ?? unmeasured) * 1.5, longestPatience))
  }
}
