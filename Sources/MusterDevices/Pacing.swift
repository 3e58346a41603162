import MusterBase

/// The due times of a stream with a constant rate: frame n is due at start + n / rate, without
/// accumulated rounding errors.
struct FrameSchedule {
  private let numerator: Int64
  private let denominator: Int64
  private var start: Instant
  private(set) var index: Int64 = 0

  /// The rate is `numerator / denominator` frames per second; both must be positive.
  init(numerator: Int, denominator: Int, start: Instant) {
    self.numerator = Int64(numerator)
    self.denominator = Int64(denominator)
    self.start = start
  }

  var interval: Duration { .nanoseconds(1_000_000_000 * denominator / numerator) }

  /// The time at which the current frame is due.
  var due: Instant { start + offset(of: index) }

  /// Advances to the next frame.
  mutating func advance() { index += 1 }

  /// Skips late frames and returns their number, so that a stream resumes at the right position
  /// after a stall instead of catching up in a burst.
  mutating func skipLate(at now: Instant) -> Int {
    let late = (now - due).wholeNanoseconds
    let step = interval.wholeNanoseconds
    guard step > 0, late >= step else { return 0 }
    let skipped = late / step
    index += skipped
    return Int(skipped)
  }

  /// Shifts the schedule so that the current frame is due now.
  mutating func rebase(to now: Instant) { start = now.advanced(by: .zero - offset(of: index)) }

  private func offset(of index: Int64) -> Duration {
    // Whole seconds are computed separately, so that the product does not overflow.
    let perSecond = numerator
    let ticks = index * denominator
    let seconds = ticks / perSecond
    return .seconds(seconds) + .nanoseconds(ticks % perSecond * 1_000_000_000 / perSecond)
  }
}

/// The schedule of audio without a device: one frame per 20 ms of the boot clock.
struct AudioSchedule {
  private var next: Instant

  /// The lag above which the schedule restarts instead of catching up, because the machine was
  /// suspended or stalled.
  static let patience = Duration.milliseconds(200)

  init(start: Instant) { next = start }

  /// The time of the next frame's first sample; advances by one frame.
  mutating func take(at now: Instant, frame: Duration) -> Instant {
    if now - next > Self.patience { next = now }
    defer { next = next + frame }
    return next
  }
}

/// A throttle for audio devices without a clock (ALSA's `null` and `file`), which would otherwise
/// accept or deliver a minute of audio in a millisecond.
///
/// Real devices are not affected, because the throttle allows an 11 % higher rate (a frame of 20 ms
/// every 18 ms) and 200 ms of lead.
struct RunawayGuard {
  private var earliest = Instant.zero

  mutating func delay(at now: Instant) -> Instant? {
    let floor = Instant(nanoseconds: now.nanoseconds - 200_000_000)
    if earliest < floor { earliest = floor }
    let result = earliest > now ? earliest : nil
    earliest = earliest + .milliseconds(18)
    return result
  }
}
