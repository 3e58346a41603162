/// A point in boot time, in nanoseconds, that also counts while the machine sleeps.
///
/// Engines never read a clock: the host hands them an `Instant` with every input. Boot time rather
/// than wall time, because a wrong wall clock must harm nobody, and suspended keys must age.
public struct Instant: Hashable, Comparable, Sendable, InstantProtocol {
  public var nanoseconds: Int64

  public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  public static let zero = Instant(nanoseconds: 0)

  public func advanced(by duration: Duration) -> Instant {
    Instant(nanoseconds: nanoseconds &+ duration.wholeNanoseconds)
  }

  public func duration(to other: Instant) -> Duration {
    .nanoseconds(other.nanoseconds &- nanoseconds)
  }

  public static func < (a: Instant, b: Instant) -> Bool { a.nanoseconds < b.nanoseconds }

  public static func + (a: Instant, b: Duration) -> Instant { a.advanced(by: b) }

  /// How long ago `b` was, seen from `a`; negative when `b` is still to come.
  public static func - (a: Instant, b: Instant) -> Duration { b.duration(to: a) }
}

extension Duration {
  /// The duration in nanoseconds, clamped to what 64 bits hold (292 years).
  public var wholeNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    if overflow { return seconds < 0 ? .min : .max }
    let (sum, carry) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
    return carry ? (seconds < 0 ? .min : .max) : sum
  }

  /// The duration in seconds.
  public var inSeconds: Double { Double(wholeNanoseconds) / 1e9 }

  /// The duration in milliseconds.
  public var inMilliseconds: Double { Double(wholeNanoseconds) / 1e6 }
}

/// The earlier of two deadlines, either of which may be absent.
public func soonest(_ a: Instant?, _ b: Instant?) -> Instant? {
  guard let a else { return b }
  guard let b else { return a }
  return min(a, b)
}
