import MusterBase

/// Tracks how regularly a peer is received over one path, which determines how soon silence is
/// suspicious.
public struct PathLiveness: Equatable, Sendable {
  /// When the last authentic datagram arrived over the path, or its use began.
  public private(set) var lastAt: Instant
  /// The smoothed interval between arrivals; a new one has weight 1/8, as RFC 6298 smooths round
  /// trips.
  private var gap = Duration.milliseconds(250)

  /// Arrivals within this time are one burst, such as the packets of a frame.
  private static let burst = Duration.milliseconds(5)
  private static let longestGap = Duration.seconds(1)
  /// Bounds for the time of three lost or late arrivals. Less than the first would take scheduling
  /// delays and Wi-Fi retransmissions for loss; more than the second would be noticed in a call.
  private static let shortestPatience = Duration.milliseconds(120)
  private static let longestPatience = Duration.seconds(1)
  /// The time for a peer to answer a challenge, in addition to the round trip.
  private static let answerTime = Duration.milliseconds(60)

  init(at now: Instant) { lastAt = now }

  mutating func heard(at now: Instant) {
    let sample = now - lastAt
    lastAt = now
    guard sample > Self.burst else { return }
    gap = gap * 0.875 + min(sample, Self.longestGap) * 0.125
  }

  /// A link starts to use the path; nothing can arrive over it before `instant`.
  mutating func restart(at instant: Instant) { lastAt = max(lastAt, instant) }

  /// Adopts the interval measured on another path to the same peer.
  mutating func adoptGap(of other: PathLiveness) { gap = other.gap }

  /// When the peer counts as late and should be challenged; it may simply have nothing to send.
  public var lateAt: Instant {
    lastAt + min(max(gap * 3, Self.shortestPatience), Self.longestPatience)
  }

  /// When the path counts as lost, because the challenge was not answered in time.
  public func lostAt(roundTrip: Duration) -> Instant {
    lateAt + max(Self.answerTime, min(roundTrip * 1.5, Self.longestPatience))
  }
}
