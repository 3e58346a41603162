import MusterBase

/// Limits the keyframes of one layer's encoder, regardless of the number of receivers.
public struct KeyframeLimiter: Equatable, Sendable {
  /// The minimum interval between keyframes, as in libwebrtc (`video/encoder_rtcp_feedback.cc`).
  public static let interval = Duration.milliseconds(300)
  /// The budget of keyframes of a layer that several receivers get: a burst, then one per interval.
  /// A keyframe takes about 300 ms of the layer's bitrate, so one receiver's requests cost the
  /// others at most 15 % of it. Meanwhile its requests are granted from `FrameCache`.
  static let sharedBurst = 3
  static let sharedInterval = FrameCache.lifetime

  private var lastKeyframe: Instant?
  /// The end of the time that the keyframes so far use up of the budget.
  private var spentUntil = Instant.zero
  private var pendingUntil: Instant?

  /// Creates a limiter without a keyframe so far, which grants the first request at once.
  public init() {}

  /// Requests a keyframe; true if the next frame should be one. Otherwise, `tick` grants the
  /// request later, unless a keyframe has already satisfied it. `isShared` is whether other
  /// receivers get the layer, too.
  public mutating func request(isShared: Bool, at now: Instant) -> Bool {
    guard let lastKeyframe else {
      granted(at: now)
      return true
    }
    var due = lastKeyframe + Self.interval
    if isShared { due = max(due, withinBudgetFrom) }
    pendingUntil = min(pendingUntil ?? due, due)
    return tick(at: now)
  }

  /// Records a keyframe, whether it was requested or not.
  public mutating func keyframeMade(at now: Instant) {
    granted(at: now)
    spentUntil = min(
      max(spentUntil, now) + Self.sharedInterval, now + Self.sharedInterval * Self.sharedBurst)
  }

  /// Grants a deferred request if it is due; true if the next frame should be a keyframe.
  public mutating func tick(at now: Instant) -> Bool {
    guard let deadline, now >= deadline else { return false }
    granted(at: now)
    return true
  }

  private mutating func granted(at now: Instant) {
    lastKeyframe = now
    pendingUntil = nil
  }

  /// The time from which the budget has room for a keyframe: the generic cell rate algorithm.
  private var withinBudgetFrom: Instant {
    spentUntil + (.zero - Self.sharedInterval * (Self.sharedBurst - 1))
  }

  /// The time at which a deferred request is due; nil if there is none.
  public var deadline: Instant? { pendingUntil }
}
