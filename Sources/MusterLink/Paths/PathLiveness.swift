import MusterBase

/// How often a peer is heard over one path, and so how soon its silence there is news.
public struct PathLiveness: Equatable, Sendable {
  /// When anything authentic last came over the path, or the path was taken.
  public private(set) var lastAt: Instant
  /// The usual time between two arrivals: one eighth of what is new, as RFC 6298 smooths round
  /// trips.
  private var gap = Duration.milliseconds(250)

  /// What follows within this belongs to one burst, as the packets of a picture do.
  private static let burst = Duration.milliseconds(5)
  private static let longestGap = Duration.seconds(1)
  /// Three arrivals in a row are lost or late. Less than the first of these would take for it a
  /// scheduler's whim or a Wi-Fi's retries, more than the second makes no difference to a call.
  private static let shortestPatience = Duration.milliseconds(120)
  private static let longestPatience = Duration.seconds(1)
  /// What a peer has to answer in, beside the round trip, when it is asked.
  private static let answerTime = Duration.milliseconds(60)

  init(at now: Instant) { lastAt = now }

  mutating func heard(at now: Instant) {
    let sample = now - lastAt
    lastAt = now
    guard sample > Self.burst else { return }
    gap = gap * 0.875 + min(sample, Self.longestGap) * 0.125
  }

  /// A link leads over the path from now on, over which nothing can come before `instant`.
  mutating func restart(at instant: Instant) { lastAt = max(lastAt, instant) }

  /// Takes over how often the peer was heard over another path.
  mutating func adoptGap(of other: PathLiveness) { gap = other.gap }

  /// When the peer is late: it may have nothing to say, and is worth a question.
  public var lateAt: Instant {
    lastAt + min(max(gap * 3, Self.shortestPatience), Self.longestPatience)
  }

  /// When the path is to be taken for lost, the question having been unanswered for long enough.
  public func lostAt(roundTrip: Duration) -> Instant {
    lateAt + max(Self.answerTime, min(roundTrip * 1.5, Self.longestPatience))
  }
}
