import MusterBase

/// Measures freezes as WebRTC counts them (webrtc-stats, `totalFreezesDuration`): an interval
/// between shown frames is a freeze if it is longer than three mean intervals and longer than the
/// mean plus 150 ms. The mean is over the last 30 intervals.
package struct FreezeMeter: Sendable {
  static let window = 30
  static let margin = Duration.milliseconds(150)

  package private(set) var freezes = 0
  package private(set) var frozen = Duration.zero
  package private(set) var longest = Duration.zero
  private var intervals = RingBuffer<Duration>(capacity: window)
  private var sum: Duration
  private var latest: Instant

  /// Begins to measure at `start`, as if a frame had been shown then and every `interval` before.
  package init(from start: Instant, interval: Duration) {
    latest = start
    sum = interval
    intervals.append(interval)
  }

  /// Records a frame shown at `now`.
  package mutating func shown(at now: Instant) {
    // A frame may be shown at once while the one before it is still delayed for lip sync.
    let interval = max(now - latest, .zero)
    count(interval)
    sum += interval
    if let dropped = intervals.append(interval) { sum -= dropped }
    latest = max(latest, now)
  }

  /// Ends the measurement: an interval that is still open may be a freeze.
  package mutating func end(at now: Instant) { count(now - latest) }

  private mutating func count(_ interval: Duration) {
    let mean = sum / intervals.count
    guard interval > max(mean * 3, mean + Self.margin) else { return }
    freezes += 1
    frozen += interval
    longest = max(longest, interval)
  }
}
