import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterWire

/// A simulation of the gossip of one channel, which measures the time and the traffic that an
/// update needs to reach all nodes. It runs only the gossip engine of each node and can therefore
/// simulate thousands of nodes.
///
/// Documents start equal, with the presence and neighbour report of every node. Then one node after
/// another changes its presence. Each path has a fixed delay, and some datagrams may be lost.
public struct GossipSimulation: Sendable {
  private struct Arrival: Sendable {
    let message: Control
    let from: Int
    let to: Int
  }

  private enum Event: Sendable {
    case arrival(Arrival)
    case wake(Int)
  }

  private struct Host: Sendable {
    let identity: Identity
    var gossip: Gossip
    /// The time of the node's earliest wake-up in the queue; nil if none is queued.
    var wakeAt: Instant?
    /// The delay of the path to each neighbour, in the order of `RandomGraph.neighbours`.
    let delays: [Duration]
    var presence: Presence
    var sequence: UInt64 = 2
  }

  /// The update that is currently spreading.
  private struct News: Sendable {
    let id: EntryID
    let at: Instant
    var reachedAt: [Instant?]
    var missing: Int
  }

  /// The size of the IPv4 and UDP headers and of a link's header and authentication tag, in bytes.
  static let overheadBytes = 28 + 13 + 16
  static let shortestDelay = Duration.milliseconds(5)
  static let longestDelay = Duration.milliseconds(50)
  /// The time for all links to come up and for both ends of each link to compare documents.
  static let warmUp = Duration.seconds(5)
  static let idleTime = Duration.seconds(10)
  /// The minimum time over which the cost of an update is measured.
  static let window = Duration.seconds(3)
  static let patience = Duration.seconds(30)

  private let options: GossipOptions
  private let channel = ChannelKey.fromName("gossip").channelID
  private let graph: RandomGraph
  private var prng: PRNG
  private var hosts: [Host] = []
  private var indices = PeerTable<NodeID, Int>()
  private var queue = EventQueue<Event>()
  private var now = Instant.zero
  private var bytes: UInt64 = 0
  private var datagrams: UInt64 = 0
  private var news: News?

  /// Builds the graph and signs two entries per node, which all nodes hold from the start.
  public init(_ options: GossipOptions) {
    self.options = options
    prng = PRNG(seed: options.seed)
    let count = max(options.nodes, 2)
    graph = RandomGraph(nodes: count, degree: options.degree, &prng)
    let identities = (0..<count).map { _ in Simulation.newIdentity(&prng) }
    for (index, identity) in identities.enumerated() { indices[identity.id] = index }
    var entries: [SignedEntry] = []
    for (index, identity) in identities.enumerated() {
      let heard = graph.neighbours[index].map { identities[$0].id.key.prefix }.sorted()
      let bodies: [EntryBody] = [
        .presence(Self.presence(index)),
        .neighbourReport(NeighbourReport(bootID: UInt64(index), heard: heard, suspected: [])),
      ]
      for (number, body) in bodies.enumerated() {
        let entry = Entry(
          author: identity.id, sequence: UInt64(number), lamport: UInt64(index), body: body)
        entries.append(SignedEntry.sign(entry, by: identity, in: channel))
      }
    }
    for (index, identity) in identities.enumerated() {
      var gossip = Gossip(
        channel: channel, own: identity.id, exempt: nil, seed: prng.next())
      gossip.restore(entries)
      let delays = graph.neighbours[index].map { _ in
        prng.duration(Self.shortestDelay, Self.longestDelay)
      }
      hosts.append(
        Host(
          identity: identity, gossip: gossip, delays: delays, presence: Self.presence(index)))
    }
  }

  /// Creates a simulation and runs it to its end.
  public static func run(_ options: GossipOptions) -> GossipResult {
    var simulation = GossipSimulation(options)
    return simulation.run()
  }

  /// Runs until every update has reached all nodes or timed out.
  public mutating func run() -> GossipResult {
    for index in hosts.indices {
      for neighbour in graph.neighbours[index] {
        let peer = hosts[neighbour].identity.id
        input(index) { $0.linkUp(peer, at: $1) }
      }
    }
    advance(by: Self.warmUp)
    let beforeIdle = bytes
    advance(by: Self.idleTime)
    let idle = Double(bytes - beforeIdle) / Self.idleTime.inSeconds / Double(hosts.count)
    var result = GossipResult(
      nodes: hosts.count, degree: options.degree, links: graph.edges, idleBytesPerSecond: idle)
    for _ in 0..<options.updates { broadcast(&result) }
    result.finish()
    return result
  }

  // MARK: Updates

  private mutating func broadcast(_ result: inout GossipResult) {
    let (bytesBefore, datagramsBefore, start) = (bytes, datagrams, now)
    let author = prng.below(hosts.count)
    hosts[author].presence.flags.formSymmetricDifference(.audioMuted)
    let entry = Entry(
      author: hosts[author].identity.id, sequence: hosts[author].sequence,
      lamport: hosts[author].gossip.document.lamport + 1,
      body: .presence(hosts[author].presence))
    hosts[author].sequence += 1
    let signed = SignedEntry.sign(entry, by: hosts[author].identity, in: channel)
    news = News(
      id: signed.id, at: now, reachedAt: Array(repeating: nil, count: hosts.count),
      missing: hosts.count)
    input(author) { $0.broadcast(signed, at: $1) }
    advance(by: Self.window)
    while news?.missing ?? 0 > 0, now - start < Self.patience { advance(by: .seconds(1)) }
    let elapsed = (now - start).inSeconds
    let spent = Double(bytes - bytesBefore) / Double(hosts.count)
    result.add(
      delays: news?.reachedAt.compactMap { $0.map { $0 - start } } ?? [],
      isComplete: news?.missing == 0,
      bytesPerNode: max(spent - result.idleBytesPerSecond * elapsed, 0),
      datagramsPerNode: Double(datagrams - datagramsBefore) / Double(hosts.count))
  }

  private static func presence(_ index: Int) -> Presence {
    Presence(bootID: UInt64(index), flags: [], name: "node \(index)", call: nil, streams: [])
  }

  // MARK: Time

  private mutating func advance(by duration: Duration) {
    let end = now + duration
    while let next = queue.deadline, next <= end {
      now = next
      while let event = queue.popDue(at: now) { handle(event) }
    }
    now = end
  }

  private mutating func handle(_ event: Event) {
    switch event {
    case .arrival(let arrival):
      let peer = hosts[arrival.from].identity.id
      input(arrival.to) { $0.receive(arrival.message, from: peer, at: $1) }
    case .wake(let index):
      guard hosts[index].wakeAt == now else { return }
      hosts[index].wakeAt = nil
      input(index) { $0.tick(at: $1) }
    }
  }

  private mutating func input(
    _ index: Int, _ body: (inout Gossip, Instant) -> [Gossip.Output]
  ) {
    for output in body(&hosts[index].gossip, now) {
      switch output {
      case .send(let message, let peer): send(message, from: index, to: peer)
      case .inserted(let entry, removed: _): noteArrival(of: entry.id, at: index)
      case .quarantined, .superseded: break
      }
    }
    guard let deadline = hosts[index].gossip.deadline else { return }
    let due = max(deadline, now)
    if let wakeAt = hosts[index].wakeAt, wakeAt <= due { return }
    hosts[index].wakeAt = due
    queue.schedule(.wake(index), at: due)
  }

  private mutating func send(_ message: Control, from index: Int, to peer: NodeID) {
    bytes += UInt64(Control.encode([message]).count + Self.overheadBytes)
    datagrams += 1
    guard let receiver = indices[peer],
      let edge = graph.neighbours[index].firstIndex(of: receiver),
      !prng.happens(options.loss)
    else { return }
    queue.schedule(
      .arrival(Arrival(message: message, from: index, to: receiver)),
      at: now + hosts[index].delays[edge])
  }

  private mutating func noteArrival(of id: EntryID, at index: Int) {
    guard news?.id == id, news?.reachedAt[index] == nil else { return }
    news?.reachedAt[index] = now
    news?.missing -= 1
  }
}
