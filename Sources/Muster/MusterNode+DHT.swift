import MusterBase
import MusterCore
import MusterDevices
import MusterDiscovery
import MusterNetwork

/// Leaving announcements in a DHT, and looking there for those of others.
extension MusterNode {
  /// What a node has of a DHT, where one is configured.
  struct DHTState {
    var table: any HashTable
    var names: PeerResolver
    /// The nodes of the DHT that were given to it.
    var bootstraps: [Address] = []
    var listening: [DHTKey] = []
    var isAskingWhereSeen = false

    /// Takes part in the DHT that has these nodes, as `HOST:PORT`; nil where there are none.
    init?(_ nodes: [String]) throws(MusterError) {
      guard !nodes.isEmpty else { return nil }
      table = try DHT.open()
      names = PeerResolver(
        endpoints: try nodes.prefix(Limits.dhtNodes).map { text throws(MusterError) in
          try PeerResolver.Endpoint(text, option: "--dht")
        })
    }
  }

  /// Nodes of the DHT to begin with; names may come to mean others.
  private static let bootstrapLimit = 32
  private static let millisecondsPerDay: UInt64 = 86_400_000

  /// Looks at what is due every second, and for where this node is seen.
  func beginDHT() {
    guard dht != nil else { return }
    every(1) { $0.maintainDHT() }
    every(2) { $0.askWhereSeen() }
  }

  /// Asks for the addresses of the DHT's nodes again, and begins with those that are new.
  func resolveDHT() {
    guard let names = dht?.names, !names.isBeingResolved else { return }
    dht?.names.isBeingResolved = true
    Task {
      let found = await names.resolve(within: Self.namePatience).flatMap(\.addresses)
      dht?.names.isBeingResolved = false
      guard let known = dht?.bootstraps, !isStopping else { return }
      let new = found.filter { !known.contains($0) }.prefix(Self.bootstrapLimit - known.count)
      dht?.bootstraps += new
      dht?.table.bootstrap(Array(new))
      maintainDHT()
    }
  }

  /// Puts the announcements that are due and listens under the tags of the day.
  private func maintainDHT() {
    guard let dht, !dht.bootstraps.isEmpty, !isStopping else { return }
    let day = WallClock.milliseconds / Self.millisecondsPerDay
    let keys = node.dhtKeys(day: day)
    for key in dht.listening where !keys.contains(key) {
      dht.table.stopListening(under: key.tag)
    }
    for key in keys where !dht.listening.contains(key) { listen(at: key, dht.table) }
    self.dht?.listening = keys
    for record in node.takeDHTRecords(day: day, at: now) { put(record, dht.table) }
  }

  private func listen(at key: DHTKey, _ table: any HashTable) {
    let (loop, inbox) = (loop, dhtInbox)
    table.listen(under: key.tag) { [weak self] value in
      guard inbox.admits() else { return }
      loop.execute { [weak self] in
        inbox.taken()
        self?.assumeIsolated { $0.found(value, at: key) }
      }
    }
  }

  private func found(_ value: [UInt8], at key: DHTKey) {
    guard !isStopping else { return }
    perform(node.found(value, in: key.key, at: now))
  }

  private func put(_ record: DHTRecord, _ table: any HashTable) {
    let (loop, key) = (loop, record.key)
    table.put(record.announcement, under: record.tag) { [weak self] in
      loop.execute { [weak self] in
        self?.assumeIsolated { $0.node.dhtRecordFailed(key, at: $0.now) }
      }
    }
  }

  /// Routers that keep a port's number for one destination mostly do so for all: where the DHT
  /// sees this host, this node's own port may be found, too.
  private func askWhereSeen() {
    guard let dht, !dht.isAskingWhereSeen, !isStopping else { return }
    self.dht?.isAskingWhereSeen = true
    Task {
      let hosts = await dht.table.seenAddresses().map(\.host)
      self.dht?.isAskingWhereSeen = false
      node.setSeenAddresses(hosts.map { Address(host: $0, port: sockets.port) })
    }
  }
}

/// Counts the values on their way from a DHT's thread to the node's loop, and says whether one more
/// may go: the loop has other things to do than reading junk.
final class DHTInbox: Sendable {
  /// A second's budget of the node for them, with room for what a full channel has left there.
  private static let limit = 640

  private let count = Monitor(0)

  func admits() -> Bool {
    count.withLock { count in
      guard count < Self.limit else { return false }
      count += 1
      return true
    }
  }

  func taken() { count.withLock { $0 -= 1 } }
}
