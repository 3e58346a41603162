import MusterBase

/// Measures freezes as WebRTC counts them (webrtc-stats, `totalFreezesDuration`): an interval
/// between shown frames is a freeze if it is longer than three mean intervals and longer than the
/// mean plus 150 ms. The mean is over the last 30 intervals.
package struct FreezeMeter: Sendable {
  static let window = 30
  static let margin = Duration.milliseconds(150)

  /// The number of freezes that have ended.
  package private(set) var freezes: UInt64 = 0
  /// The total duration of the freezes that have ended, and the longest one.
  package private(set) var frozen = Duration.zero
  package private(set) var longest = Duration.zero
  private var intervals = RingBuffer<Duration>(capacity: window)
  private var sum = Duration.zero
  /// The time of the last frame; nil if the next one ends no interval.
  private var latest: Instant?

  /// Begins to measure with the next frame, or at `start` as if a frame had been shown then; frames
  /// are expected every `interval`.
  package init(interval: Duration, from start: Instant? = nil) {
    latest = start
    expect(interval: interval)
  }

  /// Expects frames at another interval from now on.
  package mutating func expect(interval: Duration) {
    (intervals, sum) = (RingBuffer(capacity: Self.window), interval)
    intervals.append(interval)
  }

  /// Excludes the interval from the last frame to the next one.
  package mutating func pause() { latest = nil }

  /// Whether an interval between two frames is a freeze.
  package func isFreeze(_ interval: Duration) -> Bool {
    let mean = sum / intervals.count
    return interval > max(mean * 3, mean + Self.margin)
  }

  /// Records a frame shown at `now`.
  package mutating func shown(at now: Instant) {
    defer { latest = max(latest ?? now, now) }
    guard let latest else { return }
    // A frame may be shown at once while the one before it is still delayed for lip sync.
    let interval = max(now - latest, .zero)
    end(interval)
    sum += interval
    if let dropped = intervals.append(interval) { sum -= dropped }
  }

  /// Ends the measurement: an interval that is still open may be a freeze.
  package mutating func end(at now: Instant) {
    if let latest { end(now - latest) }
    latest = nil
  }

  private mutating func end(_ interval: Duration) {
    guard isFreeze(interval) else { return }
    freezes += 1
    frozen += interval
    longest = max(longest, interval)
  }
}
