import MusterBase

/// Limits the keyframes of one layer's encoder, regardless of the number of receivers.
public struct KeyframeLimiter: Equatable, Sendable {
  /// The minimum interval between keyframes, as in libwebrtc (`video/encoder_rtcp_feedback.cc`).
  public static let interval = Duration.milliseconds(300)

  private var lastKeyframe: Instant?
  private var isPending = false

  /// Creates a limiter without a keyframe so far, which grants the first request at once.
  public init() {}

  /// Requests a keyframe; true if the next frame should be one. Otherwise, `tick` grants the
  /// request later, unless a keyframe has already satisfied it.
  ///
  /// A request that was in flight when the last keyframe was sent is satisfied by that keyframe:
  /// half of `roundTrip` passes until the request arrives, the other half until the keyframe does.
  /// If the keyframe is lost, the receiver repeats its request.
  public mutating func request(roundTrip: Duration = .zero, at now: Instant) -> Bool {
    guard let lastKeyframe else {
      self.lastKeyframe = now
      return true
    }
    if now - lastKeyframe < min(roundTrip, Self.interval) { return false }
    isPending = true
    return tick(at: now)
  }

  /// Records a keyframe that was produced for another reason.
  public mutating func keyframeMade(at now: Instant) {
    lastKeyframe = now
    isPending = false
  }

  /// Grants a deferred request if it is due; true if the next frame should be a keyframe.
  public mutating func tick(at now: Instant) -> Bool {
    guard let deadline, now >= deadline else { return false }
    keyframeMade(at: now)
    return true
  }

  /// The time at which a deferred request is due; nil if there is none.
  public var deadline: Instant? {
    guard isPending else { return nil }
    return lastKeyframe.map { $0 + Self.interval }
  }
}
