import CMusterShims
import Glibc
import MusterBase

/// Wakes whoever waits for a device, from any thread; once cancelled, always cancelled.
///
/// A descriptor rather than a condition variable, so that one `poll` waits for it and the device.
public final class Cancellation: Sendable {
  let descriptor: Int32

  public init() {
    // Fails only when the process has no descriptor left; then every wait ends at once by itself.
    descriptor = muster_wake_open()
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  public func cancel() { muster_wake_signal(descriptor) }

  public var isCancelled: Bool { descriptor < 0 || muster_wait_until(descriptor, 0) == 1 }

  /// Sleeps until `instant`; false when cancelled before.
  func sleep(until instant: Instant) -> Bool {
    descriptor >= 0 && muster_wait_until(descriptor, instant.nanoseconds) == 0
  }

  /// Waits until `other` can be read (or has failed); false when cancelled or `timeout` is over.
  func waitReadable(_ other: Int32, timeout: Duration) -> Bool {
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
