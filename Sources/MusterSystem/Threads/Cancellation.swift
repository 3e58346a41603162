import CMusterSystem
import Glibc
import MusterBase

/// A cancellation flag that wakes threads waiting for a device; thread-safe and irrevocable.
///
/// The flag is an eventfd rather than a condition variable, so that one `poll` covers both the flag
/// and the device.
public final class Cancellation: Sendable {
  /// Readable once the flag is cancelled; for waits in C.
  package let descriptor: Int32

  /// Creates a flag that is not cancelled.
  public init() {
    // Fails only if the process has no free descriptors; all waits then end at once.
    descriptor = muster_wake_open()
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Cancels all current and later waits, which then return at once.
  public func cancel() { muster_wake_signal(descriptor) }

  /// Whether `cancel()` has been called.
  public var isCancelled: Bool { descriptor < 0 || muster_wait_until(descriptor, 0) == 1 }

  /// Sleeps until `instant`; false if cancelled earlier.
  package func sleep(until instant: Instant) -> Bool {
    descriptor >= 0 && muster_wait_until(descriptor, instant.nanoseconds) == 0
  }

  /// Waits until `other` is readable or has failed; false if cancelled or after `timeout`.
  package func waitReadable(_ other: Int32, timeout: Duration) -> Bool {
    let end = BootClock.now + timeout
    while true {
      let left = (end - BootClock.now).inMilliseconds
      var waits = [
        pollfd(fd: other, events: Int16(POLLIN), revents: 0),
        pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
      ]
      let ready = poll(&waits, 2, Int32(min(max(left, 0), 3_600_000)) + 1)
      if waits[1].revents != 0 || descriptor < 0 { return false }
      if ready > 0 { return true }
      if left <= 0 { return false }
    }
  }
}
