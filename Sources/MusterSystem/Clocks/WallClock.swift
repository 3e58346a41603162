import Glibc

/// The wall-clock time, for display, expiry times, DHT days and tie-breaking only. Timers use the
/// boot clock, because this clock can jump.
public enum WallClock {
  /// Milliseconds since 1970-01-01 00:00:00 UTC.
  public static var milliseconds: UInt64 {
    let now = now
    return UInt64(clamping: now.tv_sec) * 1000 + UInt64(clamping: now.tv_nsec / 1_000_000)
  }

  /// Milliseconds since 1970-01-01 00:00:00 UTC with their fraction, to be sent to pages.
  package static var exactMilliseconds: Double {
    let now = now
    return Double(now.tv_sec) * 1000 + Double(now.tv_nsec) / 1e6
  }

  private static var now: timespec {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return time
  }
}
