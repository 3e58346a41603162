import MusterBase
import MusterCore
import MusterCrypto
import MusterStore
import MusterSystem

/// Carries out requests while no node runs on the data directory. A `Node` value without sockets
/// processes the request and the store keeps the result, which other members receive when a node
/// next runs.
struct OfflineAdministration {
  private let directory: DataDirectory

  init(_ directory: DataDirectory) { self.directory = directory }

  func perform(
    _ request: Administration.Request
  ) async throws(MusterError) -> Administration.Reply {
    let store = try await Store.open(directory)
    let stored = try await store.read {
      try RequestedChannels(for: request, besides: [], in: $0)
    }
    var entropy = Entropy.system
    let now = BootClock.now
    var node = Node(
      identity: try directory.identity(), entropy: entropy.fork(), seed: entropy.u64())
    node.setWallClock(millisecondsSince1970: WallClock.milliseconds, at: now)
    let ownName = directory.displayName() ?? Configuration.defaultName
    var administrator = Administrator(stored, ownName: ownName)
    let reply = try administrator.perform(request, &node, at: now)
    try await store.write(administrator.changes)
    await store.close()
    return reply
  }
}
