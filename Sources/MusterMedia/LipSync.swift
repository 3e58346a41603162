import MusterBase

/// Delays video so that audio and video of one member are played in sync.
///
/// The algorithm follows libwebrtc's `video/stream_synchronization.cc`: skews below 30 ms are not
/// corrected, because they are invisible and following noise would make the video judder; one step
/// changes the delay by at most 80 ms.
public struct LipSync: Equatable, Sendable {
  static let deadBand = Duration.milliseconds(30)
  static let maximumStep = Duration.milliseconds(80)
  static let stepInterval = Duration.milliseconds(250)
  /// The maximum delay; a larger value would result from inconsistent clocks and would be worse
  /// than the skew.
  static let maximumDelay = Duration.milliseconds(500)
  /// The reciprocal of a new measurement's weight, which is 1/4 as in libwebrtc.
  static let smoothing = 4

  /// The current delay added to video.
  public private(set) var delay = Duration.zero

  private var target: Duration?
  private var steppedAt: Instant?

  /// Creates the initial state, with a delay of zero.
  public init() {}

  /// Updates and returns the delay, from the latency of audio at playout and the latency of video
  /// before the delay. Both latencies are differences between the same two clocks, so the clocks'
  /// offset cancels out. A nil `audioDelay` means that there is no audio.
  public mutating func videoDelay(
    audioDelay: Duration?, videoDelay: Duration, at now: Instant
  ) -> Duration {
    let wanted = audioDelay.map { Self.clamped($0 - videoDelay) } ?? .zero
    let smoothed = target.map { $0 + (wanted - $0) / Self.smoothing } ?? wanted
    target = smoothed
    if let steppedAt, now - steppedAt < Self.stepInterval { return delay }
    let error = smoothed - delay
    guard error > Self.deadBand || error < .zero - Self.deadBand else { return delay }
    delay += min(max(error, .zero - Self.maximumStep), Self.maximumStep)
    steppedAt = now
    return delay
  }

  private static func clamped(_ delay: Duration) -> Duration {
    min(max(delay, .zero), maximumDelay)
  }
}
