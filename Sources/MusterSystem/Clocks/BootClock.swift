import CMusterSystem
import MusterBase

/// The machine's boot clock (CLOCK_BOOTTIME), which also counts while the machine is suspended.
public enum BootClock {
  /// The current time since boot.
  public static var now: Instant { Instant(nanoseconds: muster_boot_nanoseconds()) }

  /// The time on this clock at which CLOCK_MONOTONIC, which stops while the machine is suspended,
  /// shows `nanoseconds`, if that is since the last suspension.
  package static func instant(monotonic nanoseconds: Int64) -> Instant {
    Instant(nanoseconds: nanoseconds &+ muster_boot_ahead_of_monotonic())
  }
}
