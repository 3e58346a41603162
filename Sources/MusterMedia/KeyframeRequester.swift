import MusterBase

/// Paces a receiver's keyframe requests (PLI) until a keyframe arrives.
public struct KeyframeRequester: Equatable, Sendable {
  /// After this many unanswered requests the interval becomes 1 s: at 200 ms, a sender that could
  /// not answer got 300 requests a minute (LiveKit issue 3490).
  static let promptTries = 3
  static let slowInterval = Duration.seconds(1)
  static let fastInterval = Duration.milliseconds(200)

  private var askedAt: Instant?
  private var tries = 0

  /// No request so far.
  public init() {}

  /// When to send the next request, given since when a keyframe is needed.
  public func nextRequest(neededSince: Instant, roundTrip: Duration) -> Instant {
    guard let askedAt else { return neededSince }
    return max(neededSince, askedAt + interval(roundTrip))
  }

  /// Records a request.
  public mutating func asked(at now: Instant) {
    askedAt = now
    tries = min(tries + 1, Self.promptTries)
  }

  /// A keyframe has arrived: the next loss is requested promptly again.
  public mutating func satisfied() { tries = 0 }

  /// Two round trips, between 200 ms and 1 s (LiveKit `downtrack.go`).
  private func interval(_ roundTrip: Duration) -> Duration {
    if tries >= Self.promptTries { return Self.slowInterval }
    return min(max(roundTrip * 2, Self.fastInterval), Self.slowInterval)
  }
}
