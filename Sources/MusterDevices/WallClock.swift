import Glibc

/// Time of day, for display and for ties only: nothing may depend on its being right.
public enum WallClock {
  /// Milliseconds since 1970.
  public static var milliseconds: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return UInt64(clamping: time.tv_sec) * 1000 + UInt64(clamping: time.tv_nsec / 1_000_000)
  }
}
