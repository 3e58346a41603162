import MusterBase

/// The frames of one stream that wait for their display, in the order in which they are decoded: a
/// later one may have the shorter delay, but refers to those before it.
package struct DisplayQueue<Frame: Sendable>: Sendable {
  /// The time by which a frame may be shown early: timers are no more exact.
  static var tolerance: Duration { .milliseconds(1) }
  /// The number of frames that may wait: two seconds of video. What exceeds it is shown early.
  static var capacity: Int { 64 }

  private var waiting: [(frame: Frame, dueAt: Instant)] = []

  /// Creates an empty queue.
  package init() {}

  /// Adds a frame that is to be shown after `delay`, but not before the one added last. Returns the
  /// time at which it is due.
  package mutating func add(_ frame: Frame, after delay: Duration, at now: Instant) -> Instant {
    let dueAt = max(now + delay, waiting.last?.dueAt ?? now)
    waiting.append((frame, dueAt))
    return dueAt
  }

  /// Takes the frames that are due, in order.
  package mutating func due(at now: Instant) -> [Frame] {
    let late = waiting.firstIndex { $0.dueAt > now + Self.tolerance } ?? waiting.count
    let count = max(late, waiting.count - Self.capacity)
    defer { waiting.removeFirst(count) }
    return waiting.prefix(count).map(\.frame)
  }
}
