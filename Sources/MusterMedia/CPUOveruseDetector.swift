import MusterBase

/// Determines whether this node gets the CPU time that it needs, from how long its work waits: the
/// datagrams for the event loop, and the captured frames for the encoders ("overuse detection" in
/// WebRTC).
///
/// A queue in the network does not count: a datagram waits here from the time at which this machine
/// received it.
public struct CPUOveruseDetector: HasDeadline, Sendable {
  /// The time over which waits are averaged.
  static let window = Duration.milliseconds(250)
  /// The fewest datagrams in a window that say something.
  private static let fewest = 8
  /// The mean wait for the event loop from which the CPU is short; far longer than a process waits
  /// on a machine that is merely busy, and as long as two packets of audio can be late.
  private static let longLoopWait = Duration.milliseconds(20)
  /// The mean wait up to which there is CPU to spare.
  private static let shortLoopWait = Duration.milliseconds(6)
  /// The mean time from capture to the end of encoding, as a share of the frame interval, from
  /// which the encoders do not keep up, and up to which they could do more.
  private static let longEncoding = 2.0
  private static let shortEncoding = 0.8
  /// The excess over the limits from which one window is enough.
  private static let severe = 4.0
  /// The windows that must agree, unless the shortage is severe.
  private static let agreeing = 2

  /// What a window shows.
  public enum Verdict: Equatable, Sendable {
    /// Too little CPU; severe if the waits are several times too long.
    case overused(isSevere: Bool)
    /// CPU to spare.
    case underused
  }

  private var loopWait = Duration.zero
  private var loopCount = 0
  private var encoding = 0.0
  private var frames = 0
  private var windowEnds: Instant?
  private var overusedWindows = 0
  private var underusedWindows = 0

  public init() {}

  /// The end of the window; nil while nothing is measured.
  public var deadline: Instant? { windowEnds }

  /// Begins to measure, or goes on; without effect while a window is open.
  public mutating func begin(at now: Instant) {
    if windowEnds == nil { startWindow(at: now) }
  }

  /// Ends measuring.
  public mutating func end() { self = Self() }

  /// Adds the time for which a datagram has waited for the event loop.
  public mutating func noteLoopWait(_ wait: Duration) {
    guard windowEnds != nil else { return }
    loopWait = loopWait + max(wait, .zero)
    loopCount += 1
  }

  /// Adds captured frames that have been encoded: their number, and the mean time from capture to
  /// the end of encoding as a share of the frame interval.
  public mutating func noteEncoding(_ share: Double, frames count: Int) {
    guard windowEnds != nil, count > 0, share.isFinite else { return }
    encoding += max(share, 0) * Double(count)
    frames += count
  }

  /// Closes the window once it is over; nil if it is not, or says nothing new.
  public mutating func verdict(at now: Instant) -> Verdict? {
    guard let windowEnds, windowEnds <= now else { return nil }
    let (loop, encoder) = (loopExcess, encodingExcess)
    startWindow(at: now)
    guard let worst = [loop, encoder].compactMap({ $0 }).max() else { return nil }
    if worst >= 1 {
      underusedWindows = 0
      overusedWindows += 1
      guard worst >= Self.severe || overusedWindows >= Self.agreeing else { return nil }
      overusedWindows = 0
      return .overused(isSevere: worst >= Self.severe)
    }
    overusedWindows = 0
    guard isShort(loop, encoder) else {
      underusedWindows = 0
      return nil
    }
    underusedWindows += 1
    guard underusedWindows >= Self.agreeing else { return nil }
    underusedWindows = 0
    return .underused
  }

  private mutating func startWindow(at now: Instant) {
    windowEnds = now + Self.window
    (loopWait, loopCount, encoding, frames) = (.zero, 0, 0, 0)
  }

  /// The mean wait for the loop in multiples of the limit; nil after too few.
  private var loopExcess: Double? {
    guard loopCount >= Self.fewest else { return nil }
    return loopWait.inSeconds / Double(loopCount) / Self.longLoopWait.inSeconds
  }

  private var encodingExcess: Double? {
    frames == 0 ? nil : encoding / Double(frames) / Self.longEncoding
  }

  private func isShort(_ loop: Double?, _ encoder: Double?) -> Bool {
    let limit = Self.shortLoopWait.inSeconds / Self.longLoopWait.inSeconds
    return loop ?? 0 <= limit && encoder ?? 0 <= Self.shortEncoding / Self.longEncoding
  }
}
