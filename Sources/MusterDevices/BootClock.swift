import CMusterShims
import MusterBase

/// The machine's boot clock (CLOCK_BOOTTIME), which includes the time of a suspend.
public enum BootClock {
  /// The current time since boot.
  public static var now: Instant { Instant(nanoseconds: muster_boot_nanoseconds()) }
}
