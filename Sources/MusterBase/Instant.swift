/// A point in boot time, in nanoseconds; boot time continues while the machine is suspended.
///
/// Engines never read a clock: the host passes an `Instant` with every input. Engines use boot time
/// because a wall clock may be wrong or jump, and because keys must age while the machine is
/// suspended.
@frozen
public struct Instant: Hashable, Comparable, Sendable, InstantProtocol {
  /// The nanoseconds since boot or, in a simulation, since its start.
  public var nanoseconds: Int64

  @inlinable public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// The origin of boot time.
  public static let zero = Instant(nanoseconds: 0)

  /// The instant `duration` later; wraps on overflow, which takes 292 years.
  @inlinable public func advanced(by duration: Duration) -> Instant {
    Instant(nanoseconds: nanoseconds &+ duration.wholeNanoseconds)
  }

  /// The time from this instant to `other`; negative if `other` is earlier.
  @inlinable public func duration(to other: Instant) -> Duration {
    // This is the computation of `Duration.nanoseconds`, but inlined: engines subtract times for
    // every packet.
    Duration(attoseconds: Int128(other.nanoseconds &- nanoseconds) &* 1_000_000_000)
  }

  @inlinable public static func < (a: Instant, b: Instant) -> Bool { a.nanoseconds < b.nanoseconds }

  /// The instant `b` after `a`.
  @inlinable public static func + (a: Instant, b: Duration) -> Instant { a.advanced(by: b) }

  /// The time from `b` to `a`; negative if `b` is later.
  @inlinable public static func - (a: Instant, b: Instant) -> Duration { b.duration(to: a) }
}

extension Duration {
  /// The duration in nanoseconds, rounded towards zero and clamped to the range of Int64 (292
  /// years).
  @inlinable public var wholeNanoseconds: Int64 {
    // Durations below 9.2 s, by far the most frequent, avoid the 128-bit divisions of `components`.
    if let short = Int64(exactly: attoseconds) { return short / 1_000_000_000 }
    let (seconds, attoseconds) = components
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    if overflow { return seconds < 0 ? .min : .max }
    let (sum, carry) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
    return carry ? (seconds < 0 ? .min : .max) : sum
  }

  /// The duration in seconds.
  @inlinable public var inSeconds: Double { Double(wholeNanoseconds) / 1e9 }

  /// The duration in milliseconds.
  @inlinable public var inMilliseconds: Double { Double(wholeNanoseconds) / 1e6 }
}

/// The earlier of two deadlines, either of which may be absent.
@inlinable public func soonest(_ a: Instant?, _ b: Instant?) -> Instant? {
  guard let a else { return b }
  guard let b else { return a }
  return min(a, b)
}
