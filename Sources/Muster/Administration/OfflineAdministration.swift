import MusterBase
import MusterCore
import MusterCrypto
import MusterDevices
import MusterStore

/// Carries out requests while no node runs on the data directory. A `Node` value without sockets
/// processes the request and the store keeps the result, which other members receive when a node
/// next runs.
struct OfflineAdministration {
  private let directory: DataDirectory

  init(_ directory: DataDirectory) { self.directory = directory }

  func perform(
    _ request: Administration.Request
  ) throws(MusterError) -> Administration.Reply {
    let store = try Store.open(directory)
    var entropy = Entropy.system
    let now = BootClock.now
    var node = Node(
      identity: try directory.identity(), entropy: entropy.fork(), seed: entropy.u64())
    node.setWallClock(millisecondsSince1970: WallClock.milliseconds, at: now)
    let ownName = directory.displayName() ?? Configuration.defaultName
    var administrator = Administrator(store, ownName: ownName)
    let reply = try administrator.perform(request, &node, at: now)
    try store.apply(administrator.changes)
    return reply
  }
}
