import MusterBase
import MusterCrypto
import MusterLink
import MusterWire
import Testing

/// Link engines on a virtual network and a virtual clock.
final class LinkWorld {
  struct Node {
    var engine: LinkEngine
    let identity: Identity
    var id: NodeID { identity.id }
    var bootID: UInt64
    /// The source of its datagrams.
    var route: Route
    /// Former routes at which it can still be reached.
    var reachableAt: [Route]
    /// Everything but `send`.
    var events: [Event] = []
    var sent: [Flight] = []
  }

  struct Event {
    let at: Instant
    let output: LinkEngine.Output
  }

  struct Flight {
    let datagram: [UInt8]
    let from: Route
    let to: Route
    let arrivesAt: Instant

    var kind: DatagramKind? { DatagramKind(of: datagram) }
  }

  static let key = ChannelKey.fromName("link tests")

  var nodes: [Node] = []
  var now = Instant.zero + .seconds(1000)
  /// One way.
  var delay: Duration = .milliseconds(10)
  /// Whether a datagram arrives.
  var passes: (Flight) -> Bool = { _ in true }
  private var flights: [Flight] = []

  /// `count` nodes in order of their ids, node n at 10.0.0.n port 1000, all in one channel.
  init(_ count: Int = 2, _ configuration: LinkEngine.Configuration = .init(), seed: UInt64 = 1) {
    let identities = (1...count).map { Self.identity(seed &* 1000 &+ UInt64($0)) }
      .sorted { $0.id < $1.id }
    for (number, identity) in identities.enumerated() {
      let route = Self.route(number)
      nodes.append(
        Node(
          engine: Self.engine(identity, boot: UInt64(number) + 1, configuration, seed: seed),
          identity: identity, bootID: UInt64(number) + 1, route: route,
          reachableAt: [route]))
    }
  }

  static func identity(_ seed: UInt64) -> Identity {
    var entropy = Entropy.seeded(seed)
    return Identity(generating: &entropy)
  }

  static func route(_ number: Int) -> Route {
    Route.direct(Address(host: .v4(0x0A00_0000 + UInt32(number)), port: 1000))
  }

  /// The route to node 0 through a third member.
  static func relayed(_ number: UInt64) -> Route {
    let first = (1...2).map { identity(1000 &+ $0).id }.min() ?? identity(1001).id
    return .relayed(to: first, by: identity(500 &+ number).id, in: key.channelID)
  }

  static func engine(
    _ identity: Identity, boot: UInt64, _ configuration: LinkEngine.Configuration = .init(),
    seed: UInt64 = 1, key: ChannelKey = LinkWorld.key
  ) -> LinkEngine {
    var engine = LinkEngine(
      identity: identity, bootID: boot,
      entropy: .seeded(seed &* 7919 &+ identity.id.key.prefix ^ boot),
      seed: seed &+ boot, configuration: configuration)
    engine.open(key)
    return engine
  }

  func link(to node: Int) -> SessionLinkID {
    SessionLinkID(key: Self.key.keyID, peer: nodes[node].id)
  }

  /// The report of discovery about `peer` at `node`.
  func connect(_ node: Int, to peer: Int) {
    perform(
      node,
      nodes[node].engine.connect(
        to: nodes[peer].id, bootID: nodes[peer].bootID, in: Self.key.keyID,
        over: nodes[peer].route, now: now))
  }

  /// Sends a control payload; false when the link does not stand.
  @discardableResult
  func say(_ text: String, from node: Int, to peer: Int) -> Bool {
    let body = Array(text.utf8)
    let sealed = nodes[node].engine.seal(
      [PayloadKind.controlByte], body[...], on: link(to: peer), at: now)
    guard let sealed else { return false }
    perform(node, [.send(sealed.datagram, over: sealed.route)])
    return true
  }

  /// The payloads that `node` received, in order.
  func heard(_ node: Int) -> [String] {
    nodes[node].events.compactMap {
      guard case .delivered(_, let payload, _, _) = $0.output else { return nil }
      return String(decoding: payload.dropFirst(), as: UTF8.self)
    }
  }

  /// Everything but deliveries.
  func states(_ node: Int) -> [LinkEngine.Output] {
    nodes[node].events.map(\.output).filter {
      if case .delivered = $0 { false } else { true }
    }
  }

  func isUp(_ node: Int, _ peer: Int) -> Bool {
    nodes[node].engine.establishedLinks.contains(link(to: peer))
  }

  /// Gives `node` the outputs of something done to its engine.
  func perform(_ node: Int, _ outputs: [LinkEngine.Output]) {
    let faults = nodes[node].engine.checkInvariants()
    #expect(faults == [])
    for output in outputs {
      guard case .send(let datagram, over: let to) = output else {
        nodes[node].events.append(Event(at: now, output: output))
        continue
      }
      let flight = Flight(
        datagram: datagram, from: nodes[node].route, to: to, arrivesAt: now + delay)
      nodes[node].sent.append(flight)
      if passes(flight) { flights.append(flight) }
    }
  }

  func run(for duration: Duration) { run(until: now + duration) }

  func run(until end: Instant) {
    while let next = nextEvent, next <= end {
      now = max(now, next)
      deliver()
      for node in nodes.indices {
        if let deadline = nodes[node].engine.deadline, deadline <= now {
          perform(node, nodes[node].engine.tick(at: now))
        }
      }
    }
    now = end
  }

  private var nextEvent: Instant? {
    let arrivals = flights.map(\.arrivesAt).min()
    return nodes.reduce(arrivals) { soonest($0, $1.engine.deadline) }
  }

  private func deliver() {
    let due = flights.filter { $0.arrivesAt <= now }
    flights.removeAll { $0.arrivesAt <= now }
    for flight in due {
      for node in nodes.indices where nodes[node].reachableAt.contains(flight.to) {
        perform(
          node, nodes[node].engine.receive(flight.datagram, from: flight.from, at: now))
      }
    }
  }
}

extension LinkWorld {
  /// Two nodes with a link that stands and is quiet.
  static func linked(
    _ configuration: LinkEngine.Configuration = .init(), seed: UInt64 = 1
  ) -> LinkWorld {
    let world = LinkWorld(2, configuration, seed: seed)
    world.connect(0, to: 1)
    world.run(for: .milliseconds(200))
    precondition(world.isUp(0, 1) && world.isUp(1, 0))
    return world
  }

  func sent(_ node: Int, _ kind: DatagramKind) -> [Flight] {
    nodes[node].sent.filter { $0.kind == kind }
  }

  /// A restarted node: same identity and address, nothing remembered.
  func restart(_ node: Int, boot: UInt64) {
    nodes[node].engine = Self.engine(nodes[node].identity, boot: boot, seed: 99)
    nodes[node].bootID = boot
  }
}
