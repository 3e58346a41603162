import MusterBase

/// Conversions between boot time, RTP timestamps and the NTP format of sender reports.
public enum RTPTime {
  public static let videoClockRate = 90_000
  public static let audioClockRate = 48_000

  /// The instant on a stream's clock; it wraps like every RTP timestamp.
  ///
  /// RFC 3550 5.1 advises a random offset against known-plaintext attacks on the payload cipher;
  /// the link's AEAD has no such weakness, and one base for all layers lets a receiver order them.
  public static func timestamp(of instant: Instant, clockRate: Int) -> UInt32 {
    let (seconds, rest) = split(instant)
    let rate = Int64(clockRate)
    return UInt32(truncatingIfNeeded: seconds &* rate &+ rest &* rate / nanosecondsPerSecond)
  }

  /// Seconds and 32 bits of fraction, as in a sender report (RFC 3550 4).
  public static func ntp(of instant: Instant) -> UInt64 {
    let (seconds, rest) = split(instant)
    let fraction = (UInt64(rest) << 32) / UInt64(nanosecondsPerSecond)
    return UInt64(truncatingIfNeeded: seconds) << 32 | fraction
  }

  public static func instant(ofNTP ntp: UInt64) -> Instant {
    let fraction = ((ntp & 0xFFFF_FFFF) * UInt64(nanosecondsPerSecond)) >> 32
    return Instant(nanoseconds: Int64(ntp >> 32) * nanosecondsPerSecond + Int64(fraction))
  }

  /// The middle 32 bits of an NTP time: 1/65536 s (RFC 3550 6.4.1, LSR).
  public static func compact(_ ntp: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: ntp >> 16) }

  /// How far `later` is ahead of `earlier`, at most half the clock's circle either way.
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
