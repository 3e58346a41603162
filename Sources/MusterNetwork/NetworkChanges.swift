import CMusterShims
import MusterSystem

/// Reports changes of this machine's interfaces, addresses and routes.
///
/// The report has no details: the receiver lists the interfaces again. The kernel may drop
/// notifications (netlink(7)), so occasional polling is still needed. Ends with this object.
package final class NetworkChanges: Sendable {
  private let socket: PollLoop.Watch

  private init(_ socket: PollLoop.Watch) { self.socket = socket }

  deinit { socket.close() }

  /// Calls `changed` on the loop shortly after each change; nil if netlink is not available.
  package static func watch(
    on loop: PollLoop, changed: @escaping @Sendable () -> Void
  ) -> NetworkChanges? {
    let descriptor = muster_network_changes_open()
    guard descriptor >= 0 else { return nil }
    return NetworkChanges(
      loop.watch(descriptor) {
        withUnsafeTemporaryAllocation(byteCount: 8192, alignment: 8) { buffer in
          var count = 0
          repeat { count = read(descriptor, buffer.baseAddress, buffer.count) } while count > 0
        }
        changed()
        return false
      })
  }

  /// Stops watching.
  package func close() { socket.close() }
}
