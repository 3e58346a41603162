import MusterBase

/// When one layer's encoder makes a keyframe, whoever and however many ask for it.
public struct KeyframeLimiter: Equatable, Sendable {
  /// libwebrtc `video/encoder_rtcp_feedback.cc`.
  public static let interval = Duration.milliseconds(300)

  private var lastKeyframe: Instant?
  private var isPending = false

  public init() {}

  /// True when the very next picture should be a keyframe; else `tick` will say when.
  ///
  /// A request that was under way when the last keyframe went out is answered by that one: asking
  /// takes half of `roundTrip`, and the keyframe takes the other half. Should it be lost, the
  /// receiver asks again.
  public mutating func request(roundTrip: Duration = .zero, at now: Instant) -> Bool {
    guard let lastKeyframe else {
      self.lastKeyframe = now
      return true
    }
    if now - lastKeyframe < min(roundTrip, Self.interval) { return false }
    isPending = true
    return tick(at: now)
  }

  /// A keyframe was made for another reason.
  public mutating func keyframeMade(at now: Instant) {
    lastKeyframe = now
    isPending = false
  }

  /// True when a request held back is due.
  public mutating func tick(at now: Instant) -> Bool {
    guard let deadline, now >= deadline else { return false }
    keyframeMade(at: now)
    return true
  }

  public var deadline: Instant? {
    guard isPending else { return nil }
    return lastKeyframe.map { $0 + Self.interval }
  }
}
