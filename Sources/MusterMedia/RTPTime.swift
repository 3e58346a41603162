import MusterBase

/// Conversions between instants, RTP timestamps and NTP timestamps.
public enum RTPTime {
  /// The RTP clock rate of video in Hz (RFC 7741 section 4.1).
  public static let videoClockRate = 90_000
  /// The RTP clock rate of Opus in Hz (RFC 7587 section 4.1).
  public static let audioClockRate = 48_000

  /// The RTP timestamp of an instant on a stream's RTP clock, modulo 2^32.
  ///
  /// No random offset is added per stream. RFC 3550 section 5.1 recommends one to make
  /// known-plaintext attacks harder, but the link's AEAD resists those. All streams share the
  /// random offset of the node's media clock, so a receiver can order frames across layers.
  public static func timestamp(of instant: Instant, clockRate: Int) -> UInt32 {
    let (seconds, rest) = split(instant)
    let rate = Int64(clockRate)
    return UInt32(truncatingIfNeeded: seconds &* rate &+ rest &* rate / nanosecondsPerSecond)
  }

  /// The NTP timestamp of a sender report: seconds and 32 bits of fraction (RFC 3550 section 4).
  public static func ntp(of instant: Instant) -> UInt64 {
    let (seconds, rest) = split(instant)
    let fraction = (UInt64(rest) << 32) / UInt64(nanosecondsPerSecond)
    return UInt64(truncatingIfNeeded: seconds) << 32 | fraction
  }

  /// The inverse of `ntp(of:)`, rounded down to nanoseconds.
  public static func instant(ofNTP ntp: UInt64) -> Instant {
    let fraction = ((ntp & 0xFFFF_FFFF) * UInt64(nanosecondsPerSecond)) >> 32
    return Instant(nanoseconds: Int64(ntp >> 32) * nanosecondsPerSecond + Int64(fraction))
  }

  /// The middle 32 bits of an NTP timestamp, in 1/65536 s (RFC 3550 section 6.4.1, LSR).
  public static func compact(_ ntp: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: ntp >> 16) }

  /// The time from `earlier` to `later`, which must be within half the range of timestamps;
  /// negative if `later` is earlier.
  public static func distance(from earlier: UInt32, to later: UInt32, clockRate: Int) -> Duration {
    let ticks = Int64(Int32(bitPattern: later &- earlier))
    return .nanoseconds(ticks * nanosecondsPerSecond / Int64(clockRate))
  }

  private static let nanosecondsPerSecond: Int64 = 1_000_000_000

  private static func split(_ instant: Instant) -> (seconds: Int64, rest: Int64) {
    var (seconds, rest) = instant.nanoseconds.quotientAndRemainder(
      dividingBy: nanosecondsPerSecond)
    if rest < 0 {
      seconds -= 1
      rest += nanosecondsPerSecond
    }
    return (seconds, rest)
  }
}
