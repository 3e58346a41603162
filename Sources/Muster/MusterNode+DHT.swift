import MusterBase
import MusterCore
import MusterDiscovery
import MusterNetwork
import MusterSystem

/// Methods that publish this node's announcements in a DHT and find the announcements of other
/// members.
extension MusterNode {
  /// The DHT state of a node with a configured DHT.
  struct DHTState {
    var table: any HashTable
    var names: PeerResolver
    /// The bootstrap nodes passed to the DHT so far.
    var bootstraps: [Address] = []
    var listening: [DHTKey] = []
    var isAskingWhereSeen = false
    let inbox = DHTInbox()

    /// Opens the DHT; nil if `nodes` is empty. `nodes` are the bootstrap nodes, as `HOST:PORT`,
    /// whose addresses are resolved later.
    init?(_ nodes: [String]) throws(MusterError) {
      guard !nodes.isEmpty else { return nil }
      table = try DHT.open()
      names = PeerResolver(
        endpoints: try nodes.prefix(Limits.dhtNodes).map { text throws(MusterError) in
          try PeerResolver.Endpoint(text, option: "--dht")
        })
    }
  }

  /// The maximum number of bootstrap addresses passed to the DHT; bounded because a name may
  /// resolve to new addresses every time.
  private static let bootstrapLimit = 32
  private static let millisecondsPerDay: UInt64 = 86_400_000

  /// Starts the periodic maintenance of DHT records and of this node's address as observed by the
  /// DHT's nodes.
  func beginDHT() {
    guard finding.dht != nil else { return }
    every(1) { $0.maintainDHT() }
    every(2) { $0.askWhereSeen() }
  }

  /// Resolves the bootstrap nodes again and passes new addresses to the DHT.
  func resolveDHT() {
    guard let names = finding.dht?.names, !names.isBeingResolved else { return }
    finding.dht?.names.isBeingResolved = true
    Task {
      let found = await names.resolve(within: Self.namePatience).flatMap(\.addresses)
      finding.dht?.names.isBeingResolved = false
      guard let known = finding.dht?.bootstraps, !isStopping else { return }
      let new = found.filter { !known.contains($0) }.prefix(Self.bootstrapLimit - known.count)
      finding.dht?.bootstraps += new
      finding.dht?.table.bootstrap(Array(new))
      maintainDHT()
    }
  }

  /// Stores the records that are due, and listens under the keys of the current day (UTC) and of
  /// the adjacent days.
  private func maintainDHT() {
    guard let dht = finding.dht, !dht.bootstraps.isEmpty, !isStopping else { return }
    let day = WallClock.milliseconds / Self.millisecondsPerDay
    let keys = node.dhtKeys(day: day)
    for key in dht.listening where !keys.contains(key) {
      dht.table.stopListening(under: key.tag)
    }
    for key in keys where !dht.listening.contains(key) { listen(at: key, dht) }
    finding.dht?.listening = keys
    for record in node.takeDHTRecords(day: day, at: now) { put(record, dht.table) }
  }

  private func listen(at key: DHTKey, _ dht: DHTState) {
    let (loop, inbox) = (loop, dht.inbox)
    dht.table.listen(under: key.tag) { [weak self] value in
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

  /// Derives address candidates from the IP addresses that DHT nodes observe for this node and the
  /// local port, because many NATs preserve ports (RFC 4787 section 4.2).
  private func askWhereSeen() {
    guard let dht = finding.dht, !dht.isAskingWhereSeen, !isStopping else { return }
    finding.dht?.isAskingWhereSeen = true
    Task {
      let hosts = await dht.table.seenAddresses().map(\.host)
      finding.dht?.isAskingWhereSeen = false
      node.setSeenAddresses(hosts.map { Address(host: $0, port: sockets.port) })
    }
  }
}

/// Limits the values queued from the DHT's thread to the event loop, so that a flood of invalid
/// values cannot delay other work.
final class DHTInbox: Sendable {
  /// The maximum number of queued values, the same as the burst of `newBudget` in
  /// `PublishedAnnouncements`: twice the records of a full channel.
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
