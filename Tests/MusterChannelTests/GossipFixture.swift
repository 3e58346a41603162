import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire

extension Gossip {
  /// A node's gossip with links to others; its first messages are discarded.
  static func linked(_ own: UInt64, to peers: [UInt64], at now: Instant = seconds(1)) -> Gossip {
    var gossip = Gossip(
      channel: testKey.channelID, own: testIdentity(own).id, exempt: nil, seed: own)
    for peer in peers { _ = gossip.linkUp(testIdentity(peer).id, at: now) }
    return gossip
  }
}

extension Array where Element == Gossip.Output {
  var sends: [(message: Control, to: NodeID)] {
    compactMap { if case .send(let message, let peer) = $0 { (message, peer) } else { nil } }
  }

  /// Bytes of entries sent to a peer.
  func entries(to peer: NodeID) -> [[UInt8]] {
    sends.compactMap { message, to in
      if to == peer, case .entry(let bytes) = message { bytes } else { nil }
    }
  }

  func wants(of peer: NodeID) -> [UInt64] {
    sends.flatMap { message, to -> [UInt64] in
      if to == peer, case .want(let ids) = message { return ids }
      return []
    }
  }

  var ranges: [RangeSummary] {
    sends.flatMap { message, _ -> [RangeSummary] in
      if case .ranges(let ranges) = message { return ranges }
      return []
    }
  }

  var bytes: Int { sends.reduce(0) { $0 + Control.encode([$1.message]).count } }
}

/// Nodes that gossip over links with delay and loss, on a virtual clock.
struct GossipNet {
  private struct Flight {
    var at: Instant
    var from: Int
    var to: Int
    var message: Control
  }

  static let delay = Duration.milliseconds(20)

  var nodes: [Gossip] = []
  let identities: [Identity]
  let loss: Double
  private(set) var now = seconds(1)
  private(set) var bytes = 0
  private(set) var entriesSent = 0
  private var links: [[Int]]
  private var sequences: [UInt64]
  /// The messages in flight, in the order of arrival.
  private var flights: [Flight] = []
  private var prng: PRNG

  init(_ count: Int, links edges: [(Int, Int)], loss: Double = 0, seed: UInt64 = 1) {
    identities = (1...count).map { testIdentity(UInt64($0)) }
    self.loss = loss
    prng = PRNG(seed: seed)
    links = Array(repeating: [], count: count)
    sequences = Array(repeating: 0, count: count)
    nodes = identities.map { identity in
      Gossip(
        channel: testKey.channelID, own: identity.id, exempt: nil,
        seed: seed &* 1000 &+ identity.id.key.prefix)
    }
    for (a, b) in edges { connect(a, b) }
  }

  mutating func connect(_ a: Int, _ b: Int) {
    links[a].append(b)
    links[b].append(a)
    let (first, second) = (identities[a].id, identities[b].id)
    input(a) { $0.linkUp(second, at: $1) }
    input(b) { $0.linkUp(first, at: $1) }
  }

  mutating func disconnect(_ a: Int, _ b: Int) {
    links[a].removeAll { $0 == b }
    links[b].removeAll { $0 == a }
    nodes[a].linkDown(identities[b].id)
    nodes[b].linkDown(identities[a].id)
  }

  @discardableResult
  mutating func say(_ node: Int, _ body: EntryBody) -> SignedEntry {
    sequences[node] += 1
    let entry = Entries.signed(
      UInt64(node + 1), sequence: sequences[node], lamport: nodes[node].document.lamport + 1,
      body)
    broadcast(entry, at: node)
    return entry
  }

  mutating func broadcast(_ entry: SignedEntry, at node: Int) {
    input(node) { $0.broadcast(entry, at: $1) }
  }

  /// Every node publishes a neighbour report.
  mutating func introduceAll() {
    for node in nodes.indices {
      say(node, Entries.neighbourReport(links[node].map { identities[$0].id }))
    }
  }

  var agrees: Bool { nodes.allSatisfy { $0.document.digest == nodes[0].document.digest } }

  func haveAll(_ entry: SignedEntry) -> Bool {
    nodes.allSatisfy { $0.document.contains(entry.id.prefix) }
  }

  /// The time until all documents were equal; nil if they are not after `limit`.
  mutating func recompute(within limit: Duration) -> Duration? {
    let start = now
    while !agrees {
      guard now - start < limit else { return nil }
      run(.milliseconds(50))
    }
    return now - start
  }

  mutating func run(_ duration: Duration) {
    let end = now + duration
    while let due = nextDue(), due <= end {
      now = due
      if let flight = flights.first, flight.at <= now {
        flights.removeFirst()
        let peer = identities[flight.from].id
        input(flight.to) { $0.receive(flight.message, from: peer, at: $1) }
        continue
      }
      for node in nodes.indices where nodes[node].deadline.map({ $0 <= due }) ?? false {
        input(node) { $0.tick(at: $1) }
      }
    }
    now = end
  }

  private func nextDue() -> Instant? {
    var next = flights.first?.at
    for node in nodes { next = soonest(next, node.deadline) }
    // A deadline in the past, which `tick` failed to move, must not turn the clock back.
    return next.map { max($0, now) }
  }

  private mutating func input(
    _ node: Int, _ body: (inout Gossip, Instant) -> [Gossip.Output]
  ) {
    for (message, peer) in body(&nodes[node], now).sends {
      bytes += Control.encode([message]).count
      if case .entry = message { entriesSent += 1 }
      guard let to = links[node].first(where: { identities[$0].id == peer }),
        !prng.chance(loss)
      else { continue }
      flights.append(Flight(at: now + Self.delay, from: node, to: to, message: message))
    }
  }
}
