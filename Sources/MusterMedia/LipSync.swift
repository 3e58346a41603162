import MusterBase

/// How long a picture waits so that sound and picture of one member leave together.
///
/// After libwebrtc's `video/stream_synchronization.cc`: what is off by less than 30 ms is left
/// alone (nobody sees it, and following noise would shake the picture), and one step moves at most
/// 80 ms.
public struct LipSync: Equatable, Sendable {
  static let deadBand = Duration.milliseconds(30)
  static let maximumStep = Duration.milliseconds(80)
  static let stepInterval = Duration.milliseconds(250)
  /// Beyond this the clocks are confused; a picture this late is worse than one out of step.
  static let maximumDelay = Duration.milliseconds(500)
  /// Of a new measurement, this part is believed at once (libwebrtc averages over 4).
  static let smoothing = 4

  /// What pictures wait now.
  public private(set) var delay = Duration.zero

  private var target: Duration?
  private var steppedAt: Instant?

  public init() {}

  /// The delays run from capture until the sound leaves and until the picture could, by the same
  /// two clocks, so that any offset between them cancels; a nil `audioDelay` is no sound.
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
