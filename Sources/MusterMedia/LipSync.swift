import MusterBase

/// Delays video so that audio and video of one member are played in sync: a frame is shown as long
/// after its capture as audio is played, or later where repairs take longer (`RepairDelay`). A
/// frame that was repaired is therefore shown on time, and the frames behind it at their intervals.
///
/// The latency follows its target as in libwebrtc's `video/stream_synchronization.cc`: skews
/// below 30 ms are not corrected, because they are invisible and following noise would make the
/// video judder; one step changes the latency by at most 80 ms.
public struct LipSync: Equatable, Sendable {
  static let deadBand = Duration.milliseconds(30)
  static let maximumStep = Duration.milliseconds(80)
  static let stepInterval = Duration.milliseconds(250)
  /// The maximum delay; a larger value would result from inconsistent clocks and would be worse
  /// than the skew.
  static let maximumDelay = Duration.milliseconds(500)
  /// The reciprocal of a new measurement's weight, which is 1/4 as in libwebrtc.
  static let smoothing = 4

  /// The time from the capture of a frame to its display; nil without a target.
  private var latency: Duration?
  /// The smoothed target.
  private var target: Duration?
  private var steppedAt: Instant?

  /// Creates the initial state, which delays nothing.
  public init() {}

  /// Returns the time for which a frame has to wait, from the latency to aim for, that of audio at
  /// playout or more, and the frame's own so far. Both latencies are differences between the same
  /// two clocks, so the clocks' offset cancels out. Without a target frames do not wait.
  public mutating func delay(
    target aim: Duration?, video: Duration, at now: Instant
  ) -> Duration {
    guard let aim else {
      self = LipSync()
      return .zero
    }
    let smoothed = target.map { $0 + (aim - $0) / Self.smoothing } ?? aim
    target = smoothed
    let latency = stepped(from: latency ?? video, to: smoothed, at: now)
    self.latency = latency
    return min(max(latency - video, .zero), Self.maximumDelay)
  }

  private mutating func stepped(
    from latency: Duration, to target: Duration, at now: Instant
  ) -> Duration {
    if let steppedAt, now - steppedAt < Self.stepInterval { return latency }
    let error = target - latency
    guard error > Self.deadBand || error < .zero - Self.deadBand else { return latency }
    steppedAt = now
    return latency + min(max(error, .zero - Self.maximumStep), Self.maximumStep)
  }
}
