import Glibc

/// The wall-clock time, for display, expiry times, DHT days and tie-breaking only. Timers use the
/// boot clock, because this clock can jump.
public enum WallClock {
  /// Milliseconds since 1970-01-01 00:00:00 UTC.
  public static var milliseconds: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return UInt64(clamping: time.tv_sec) * 1000 + UInt64(clamping: time.tv_nsec / 1_000_000)
  }
}
