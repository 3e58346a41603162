import MusterBase

/// Measures how long captured frames take until they are encoded. Used by one thread.
struct EncodingPace {
  /// The measurements since the last report.
  struct Report: Equatable {
    /// The mean time from capture to the end of encoding, as a share of the frame interval.
    let share: Double
    let frames: Int
  }

  /// The time between reports.
  private static let interval = Duration.milliseconds(200)
  /// The time over which the shortest age is looked for: that of a frame that did not wait, since
  /// what a camera calls the time of capture may be long before a frame can be had.
  private static let memory = Duration.seconds(10)

  private var shortest: Duration?
  private var shortestBefore: Duration?
  private var memoryEnds = Instant.zero
  private var sum = 0.0
  private var frames = 0
  private var reportedAt = Instant.zero

  /// Notes that a frame of this age was taken from the source, to be encoded or not.
  mutating func took(_ age: Duration, at now: Instant) {
    if now >= memoryEnds {
      (shortestBefore, shortest, memoryEnds) = (shortest, nil, now + Self.memory)
    }
    shortest = min(shortest ?? age, age)
  }

  /// Notes that a frame of this age is encoded; nil unless a report is due.
  mutating func encoded(_ age: Duration, framesPerSecond: Int, at now: Instant) -> Report? {
    let usual = min(shortest ?? age, shortestBefore ?? age)
    sum += (age - usual).inSeconds * Double(framesPerSecond)
    frames += 1
    guard now - reportedAt >= Self.interval else { return nil }
    defer { (sum, frames, reportedAt) = (0, 0, now) }
    return Report(share: sum / Double(frames), frames: frames)
  }
}
