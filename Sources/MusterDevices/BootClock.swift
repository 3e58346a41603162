import CMusterShims
import MusterBase

/// The machine's boot clock (CLOCK_BOOTTIME), which also counts while the machine is suspended.
public enum BootClock {
  /// The current time since boot.
  public static var now: Instant { Instant(nanoseconds: muster_boot_nanoseconds()) }
}
