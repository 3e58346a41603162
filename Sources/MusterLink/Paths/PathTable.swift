import MusterBase

/// All paths of this node, keyed by peer and route.
///
/// Links of different channels between the same two nodes share the entries, so each route is
/// measured only once. Entries outlive links: a restarted peer is first tried at its last direct
/// address.
///
/// The link engine owns the table, because every datagram that is opened or sealed changes an
/// entry.
public struct PathTable: Sendable {
  /// The maximum number of routes per peer: twice the addresses that a peer can announce, for its
  /// current addresses and the addresses in its previous network.
  public static let routesPerPeer = 2 * Limits.addresses
  /// The maximum number of entries in total: four for every possible link.
  public static let capacity = 4 * Limits.links

  private var paths = PeerTable<PathID, Path>()
  /// The time at which the next ping is due.
  public private(set) var deadline: Instant?

  init() {}

  /// The paths in order of peer and route.
  public var ids: [PathID] { paths.keys }
  /// The number of entries.
  public var count: Int { paths.count }
  /// The entry of a path; nil if the path is unknown or was evicted.
  public subscript(id: PathID) -> Path? { paths[id] }

  /// The smoothed round trip of a path; nil before the first sample.
  public func roundTrip(_ id: PathID) -> Duration? { paths[id]?.roundTrip?.smoothed }

  /// The time within which the answer to a request on a path can be expected; nil before the first
  /// sample.
  public func answerTime(_ id: PathID) -> Duration? { paths[id]?.roundTrip?.answerTime }

  /// The direct route over which a peer was last reached: the validated path with the latest
  /// arrival; nil if there is none.
  public func lastDirectRoute(to peer: NodeID) -> Address? {
    lastDirectRoute(to: peer, except: nil)
  }

  private func lastDirectRoute(to peer: NodeID, except excluded: Route?) -> Address? {
    var best: (address: Address, at: Instant)?
    for index in range(of: peer) {
      guard paths.keys[index].route != excluded, let address = paths.keys[index].route.address,
        let validatedAt = paths[at: index].validatedAt
      else { continue }
      let at = max(validatedAt, paths[at: index].received.lastAt ?? validatedAt)
      if best.map({ at > $0.at }) ?? true { best = (address, at) }
    }
    return best?.address
  }

  /// Another direct route over which the peer of `path` was reached, for when that path has become
  /// silent: the validated one with the latest arrival; nil if there is none.
  func alternative(to path: PathID) -> Address? {
    lastDirectRoute(to: path.peer, except: path.route)
  }

  // MARK: Changes

  /// Modifies an entry, which is created if necessary.
  mutating func change(_ id: PathID, at now: Instant, _ body: (inout Path) -> Void) {
    if paths.update(id, body) != nil { return }
    makeRoom(for: id.peer)
    var path = Path(at: now)
    body(&path)
    paths[id] = path
  }

  /// Moves a link from `old` to `new`. The interval between a peer's datagrams does not depend on
  /// the route, so an unused path adopts the interval of the old path.
  mutating func move(from old: PathID?, to new: PathID, at now: Instant) {
    let liveness = old.flatMap { paths[$0]?.liveness }
    change(new, at: now) { path in
      if path.users == 0, let liveness { path.liveness.adoptGap(of: liveness) }
      path.begin(at: now)
    }
    if let old { leave(old, at: now) }
  }

  /// Ends the use of `id` by a link.
  mutating func leave(_ id: PathID, at now: Instant) {
    _ = paths.update(id) { $0.end(at: now) }
    deadline = nextPing
  }

  // MARK: Probing

  /// The paths whose ping is due, for the caller to send and reschedule.
  public func duePings(at now: Instant) -> [PathID] {
    var due: [PathID] = []
    for index in 0..<paths.count where paths[at: index].nextPingAt.map({ $0 <= now }) ?? false {
      due.append(paths.keys[index])
    }
    return due
  }

  /// Schedules the next ping of a path; `due` is nil if no association uses the path.
  public mutating func schedulePing(_ id: PathID, at due: Instant?) {
    _ = paths.update(id) { $0.nextPingAt = due }
    deadline = nextPing
  }

  private var nextPing: Instant? {
    var next: Instant?
    for index in 0..<paths.count { next = soonest(next, paths[at: index].nextPingAt) }
    return next
  }

  /// Records a pong, received over `id`, to a ping sent at `sentAt`. The pong yields a sample only
  /// if the path was already in use when the ping was sent, because the ping took another path
  /// otherwise.
  public mutating func receivePong(_ id: PathID, sentAt: Instant, at now: Instant) {
    _ = paths.update(id) { path in
      guard let since = path.usedSince, sentAt >= since else { return }
      path.measured(now - sentAt)
    }
  }

  /// Records a round trip that was measured otherwise, such as by congestion feedback.
  public mutating func measured(_ id: PathID, _ roundTrip: Duration) {
    _ = paths.update(id) { $0.measured(roundTrip) }
  }

  // MARK: Bounds

  private func range(of peer: NodeID) -> Range<Int> {
    let first = paths.firstIndex { $0.peer >= peer }
    var last = first
    while last < paths.count, paths.keys[last].peer == peer { last += 1 }
    return first..<last
  }

  private mutating func makeRoom(for peer: NodeID) {
    let own = range(of: peer)
    if own.count >= Self.routesPerPeer { forgetIdlest(of: own) }
    if paths.count >= Self.capacity { forgetIdlest(of: 0..<paths.count) }
  }

  /// Evicts the path idle for longest. Paths in use are kept, which is safe because links, and so
  /// paths in use, are limited.
  private mutating func forgetIdlest(of range: Range<Int>) {
    let idle = range.filter { paths[at: $0].users == 0 }
    let oldest = idle.min { paths[at: $0].touchedAt < paths[at: $1].touchedAt }
    if let oldest { paths[paths.keys[oldest]] = nil }
  }

  // MARK: Invariants

  /// The inconsistencies between the entries and `inUse`, which lists each path once per link.
  func violations(inUse: [PathID]) -> [String] {
    var found: [String] = []
    var uses = [Int](repeating: 0, count: paths.count)
    for id in inUse {
      if let position = paths.index(of: id) {
        uses[position] += 1
      } else {
        found.append("no path entry for \(id.peer) over \(id.route), which a link uses")
      }
    }
    for position in 0..<paths.count {
      let id = paths.keys[position]
      let users = paths[at: position].users
      if users != uses[position] {
        found.append("\(users) users of \(id.peer) over \(id.route), not \(uses[position])")
      }
      if !id.route.mayLead(to: id.peer) {
        found.append("route \(id.route) cannot lead to \(id.peer)")
      }
      if users == 0, paths[at: position].nextPingAt != nil {
        found.append("pings of an unused path, to \(id.peer) over \(id.route)")
      }
    }
    if deadline != nextPing { found.append("pings of paths are due at another time") }
    if paths.count > Self.capacity { found.append("\(paths.count) paths") }
    return found
  }
}
