import CMusterShims
import MusterBase

/// The machine's boot clock, which also counts while it sleeps.
public enum BootClock {
  public static var now: Instant { Instant(nanoseconds: muster_boot_nanoseconds()) }
}
