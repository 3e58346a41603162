import MusterBase
import MusterSystem
import Synchronization

/// Service discovery by DNS-SD (RFC 6763), which runs until it is stopped or released.
package final class ServiceDiscovery: Sendable {
  /// The timeout for withdrawing the service, so that a hung daemon does not delay the leave; the
  /// daemon withdraws the service anyway when the process ends.
  private static let withdrawal = Duration.milliseconds(300)

  private let running: Mutex<AvahiSession?>

  /// Publishes `port` on these interfaces, all if empty, and looks for others. `onChange` receives
  /// the addresses of all other services after each change; `onWarning` receives an error when it
  /// first occurs. Both are called on Avahi's thread.
  package init(
    port: UInt16, interfaces: [String], onChange: @escaping @Sendable ([Address]) -> Void,
    onWarning: @escaping @Sendable (MusterError) -> Void
  ) {
    running = Mutex(
      AvahiSession(
        port: port, interfaces: interfaces, onChange: onChange, onWarning: onWarning))
  }

  deinit {
    // Stopping may block.
    if let discovery = take() { WorkerThread("muster-dns-sd") { discovery.stop() } }
  }

  /// Withdraws the service and stops browsing.
  package func stop() async {
    guard let discovery = take() else { return }
    _ = await WorkerThread.result("muster-dns-sd", within: Self.withdrawal) { discovery.stop() }
  }

  private func take() -> AvahiSession? {
    running.withLock { running in
      defer { running = nil }
      return running
    }
  }
}
