import MusterBase

/// Says when the frames of a steady stream are due: frame n at start + n / rate, without drift.
struct FrameSchedule {
  private let numerator: Int64
  private let denominator: Int64
  private var start: Instant
  private(set) var index: Int64 = 0

  /// A rate of `numerator / denominator` frames a second; both must be positive.
  init(numerator: Int, denominator: Int, start: Instant) {
    self.numerator = Int64(numerator)
    self.denominator = Int64(denominator)
    self.start = start
  }

  var interval: Duration { .nanoseconds(1_000_000_000 * denominator / numerator) }

  /// When the current frame is due.
  var due: Instant { start + offset(of: index) }

  /// The frame was delivered.
  mutating func advance() { index += 1 }

  /// Skips frames whose successor is due already and says how many: after a delay the stream goes
  /// on where it should be, instead of hurrying through what was missed.
  mutating func skipLate(at now: Instant) -> Int {
    let late = (now - due).wholeNanoseconds
    let step = interval.wholeNanoseconds
    guard step > 0, late >= step else { return 0 }
    let skipped = late / step
    index += skipped
    return Int(skipped)
  }

  /// The current frame is due now; nothing is skipped.
  mutating func rebase(to now: Instant) { start = now.advanced(by: .zero - offset(of: index)) }

  private func offset(of index: Int64) -> Duration {
    // Whole seconds apart, so that nothing overflows in centuries.
    let perSecond = numerator
    let ticks = index * denominator
    let seconds = ticks / perSecond
    return .seconds(seconds) + .nanoseconds(ticks % perSecond * 1_000_000_000 / perSecond)
  }
}

/// The pace of audio where no device gives one: 20 ms a frame by the boot clock.
struct AudioSchedule {
  private var next: Instant

  /// Behind by more than this, the stream does not catch up: the machine slept or stalled.
  static let patience = Duration.milliseconds(200)

  init(start: Instant) { next = start }

  /// The time of the next frame's first sample; moves on by one frame.
  mutating func take(at now: Instant, frame: Duration) -> Instant {
    if now - next > Self.patience { next = now }
    defer { next = next + frame }
    return next
  }
}

/// Slows down a sound device without a clock of its own (ALSA's `null` and `file`), which would
/// otherwise take or give a minute in a millisecond.
///
/// A real device never notices: it may be 10 % fast, and 200 ms early at any time.
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
