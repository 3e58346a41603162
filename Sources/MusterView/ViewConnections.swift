import NIOCore

/// The connections to the call page; confined to one event loop.
///
/// Other users of the machine can connect, too. They must not keep the page from its user: where
/// all connections are taken, the oldest that is no page gives way. A browser sends its request at
/// once, and has its answer before.
package final class ViewConnections {
  /// The maximum number of connections, pages and requests together.
  package static let limit = 64

  /// Oldest first.
  private var requests: [any Channel] = []
  private var pages: [any Channel] = []

  /// Takes in a new connection, in the place of another if necessary; returns false if there are
  /// only pages.
  func add(_ channel: any Channel) -> Bool {
    if requests.count + pages.count >= Self.limit {
      guard !requests.isEmpty else { return false }
      requests.removeFirst().close(promise: nil)
    }
    requests.append(channel)
    return true
  }

  /// Notes that a connection has become a page, which gives way to no other. One that ended in the
  /// meantime stays forgotten.
  func upgraded(_ channel: any Channel) {
    guard let index = requests.firstIndex(where: { $0 === channel }) else { return }
    pages.append(requests.remove(at: index))
  }

  /// Notes the end of a connection.
  func ended(_ channel: any Channel) {
    requests.removeAll { $0 === channel }
    pages.removeAll { $0 === channel }
  }
}
