import MusterBase

/// Paces a receiver's keyframe requests (PLI) until a keyframe arrives.
public struct KeyframeRequester: Equatable, Sendable {
  /// The number of unanswered requests after which the interval becomes 1 s: at 200 ms, a sender
  /// that could not answer received 300 requests a minute (LiveKit issue 3490).
  static let promptTries = 3
  static let slowInterval = Duration.seconds(1)
  static let fastInterval = Duration.milliseconds(200)

  private var askedAt: Instant?
  private var tries = 0

  /// Creates a requester without requests so far.
  public init() {}

  /// The time of the next request, if a keyframe has been needed since `neededSince`.
  public func nextRequest(neededSince: Instant, roundTrip: Duration) -> Instant {
    guard let askedAt else { return neededSince }
    return max(neededSince, askedAt + interval(roundTrip))
  }

  /// Records a request.
  public mutating func asked(at now: Instant) {
    askedAt = now
    tries = min(tries + 1, Self.promptTries)
  }

  /// Resets the interval after a keyframe has arrived, so that the next loss is requested promptly.
  public mutating func satisfied() { tries = 0 }

  /// The interval to the next request: two round trips within 200 ms to 1 s (LiveKit
  /// `downtrack.go`), and 1 s after `promptTries` requests.
  private func interval(_ roundTrip: Duration) -> Duration {
    if tries >= Self.promptTries { return Self.slowInterval }
    return min(max(roundTrip * 2, Self.fastInterval), Self.slowInterval)
  }
}
