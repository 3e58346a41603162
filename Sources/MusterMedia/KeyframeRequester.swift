import MusterBase

/// How often one stream's receiver asks for a keyframe until one comes.
public struct KeyframeRequester: Equatable, Sendable {
  /// After this many requests without an answer they are sent once a second: at every 200 ms, a
  /// sender that cannot answer got 300 in a minute (LiveKit issue 3490).
  static let promptTries = 3
  static let slowInterval = Duration.seconds(1)
  static let fastInterval = Duration.milliseconds(200)

  private var askedAt: Instant?
  private var tries = 0

  public init() {}

  /// When to ask (again), given since when a keyframe is needed.
  public func nextRequest(neededSince: Instant, roundTrip: Duration) -> Instant {
    guard let askedAt else { return neededSince }
    return max(neededSince, askedAt + interval(roundTrip))
  }

  public mutating func asked(at now: Instant) {
    askedAt = now
    tries = min(tries + 1, Self.promptTries)
  }

  public mutating func satisfied() { tries = 0 }

  /// LiveKit `downtrack.go`: two round trips, within 200 ms and 1 s.
  private func interval(_ roundTrip: Duration) -> Duration {
    if tries >= Self.promptTries { return Self.slowInterval }
    return min(max(roundTrip * 2, Self.fastInterval), Self.slowInterval)
  }
}
