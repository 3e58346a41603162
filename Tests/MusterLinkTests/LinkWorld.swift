import MusterBase
import MusterCrypto
import MusterLink
import MusterWire
import Testing

/// Link engines on a virtual network and a virtual clock.
final class LinkWorld {
  /// A call of an engine. An engine cannot be copied, but replaying its calls gives another one the
  /// same state.
  typealias Input = (inout LinkEngine) -> [LinkEngine.Output]

  /// A reference, because its engine cannot be copied.
  final class Node {
    var engine: LinkEngine
    let identity: Identity
    var id: NodeID { identity.id }
    var bootID: UInt64
    /// The source of its datagrams, except of those to IPv6 addresses if `v6` is set.
    var route: Route
    var v6: Route?
    /// Former routes at which it can still be reached.
    var reachableAt: [Route]
    /// The outputs other than `send`, in order.
    var events: [Event] = []
    var sent: [Flight] = []
    /// Makes the engine as it was at the start of this run.
    fileprivate var makeEngine: () -> LinkEngine
    /// The world's calls of the engine since then.
    fileprivate var inputs: [Input] = []

    init(
      identity: Identity, bootID: UInt64, route: Route, makeEngine: @escaping () -> LinkEngine
    ) {
      engine = makeEngine()
      self.identity = identity
      self.bootID = bootID
      self.route = route
      reachableAt = [route]
      self.makeEngine = makeEngine
    }

    /// Another engine in the state of this one. The test must not have called this one directly,
    /// because only the world's calls are kept.
    func twin() -> LinkEngine {
      let twin = Self.replay(inputs, on: makeEngine())
      #expect(twin.counters == engine.counters)
      return twin
    }

    /// Makes engines in the present state of this one, even after it has changed.
    func twins() -> () -> LinkEngine {
      { [inputs, makeEngine] in Self.replay(inputs, on: makeEngine()) }
    }

    private static func replay(_ inputs: [Input], on engine: consuming LinkEngine) -> LinkEngine {
      for input in inputs { _ = input(&engine) }
      return engine
    }
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
  /// The one-way delay of all datagrams.
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
        Node(identity: identity, bootID: UInt64(number) + 1, route: route) {
          Self.engine(identity, boot: UInt64(number) + 1, configuration, seed: seed)
        })
    }
  }

  static func identity(_ seed: UInt64) -> Identity {
    var entropy = Entropy.seeded(seed)
    return Identity(generating: &entropy)
  }

  static func route(_ number: Int) -> Route {
    Route.direct(Address(host: .v4(0x0A00_0000 + UInt32(number)), port: 1000))
  }

  /// The route to node 0 (the smallest id) through a third member.
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

  /// Gives `node` the report of discovery about `peer`; `found` is the address if not the main one.
  func connect(_ node: Int, to peer: Int, at found: Route? = nil) {
    let (id, bootID, route) = (nodes[peer].id, nodes[peer].bootID, found ?? nodes[peer].route)
    give(node) { [now] in
      $0.connect(to: id, bootID: bootID, in: Self.key.keyID, over: route, now: now)
    }
  }

  /// Sends a control payload; returns false if the link is not up.
  @discardableResult
  func say(_ text: String, from node: Int, to peer: Int) -> Bool {
    let payload = OutgoingPayload(.bytes([PayloadKind.controlByte]), Array(text.utf8)[...])
    let link = link(to: peer)
    let outputs = give(node) { [now] in
      guard let sealed = $0.seal(payload, on: link, at: now) else { return [] }
      return [.send(sealed.datagram, over: sealed.route)]
    }
    return !outputs.isEmpty
  }

  /// Hands `node` a datagram at the time of its arrival.
  @discardableResult
  func receive(_ node: Int, _ flight: Flight) -> [LinkEngine.Output] {
    give(node) { [now] in $0.receive(flight.datagram, from: flight.from, at: now) }
  }

  /// The control payloads that `node` received, in order.
  func heard(_ node: Int) -> [String] {
    nodes[node].events.compactMap {
      guard case .delivered(_, let payload, _, _) = $0.output,
        PayloadKind(of: payload) == .control
      else { return nil }
      return String(decoding: payload.dropFirst(), as: UTF8.self)
    }
  }

  /// The packets that `node` received with any payload, in order.
  func packets(_ node: Int) -> [ReceivedPacket] {
    nodes[node].events.compactMap {
      if case .delivered(_, _, _, let packet) = $0.output { packet } else { nil }
    }
  }

  /// The events of a node other than `delivered`.
  func changes(_ node: Int) -> [Event] {
    nodes[node].events.filter { if case .delivered = $0.output { false } else { true } }
  }

  /// The outputs of a node other than `send` and `delivered`.
  func states(_ node: Int) -> [LinkEngine.Output] { changes(node).map(\.output) }

  func isUp(_ node: Int, _ peer: Int) -> Bool {
    nodes[node].engine.establishedLinks.contains(link(to: peer))
  }

  /// Lets `node` check the path to a peer from which nothing arrives.
  func check(_ node: Int, to peer: Int) {
    let link = link(to: peer)
    give(node) { [now] in $0.check(link, at: now) }
  }

  /// Calls the engine of `node`, and keeps the call for the engine's twins.
  @discardableResult
  private func give(_ node: Int, _ input: @escaping Input) -> [LinkEngine.Output] {
    nodes[node].inputs.append(input)
    let outputs = input(&nodes[node].engine)
    perform(node, outputs)
    return outputs
  }

  /// Executes the outputs of the engine of `node`.
  func perform(_ node: Int, _ outputs: [LinkEngine.Output]) {
    let faults = nodes[node].engine.checkInvariants()
    #expect(faults == [])
    for output in outputs {
      guard case .send(let datagram, over: let to) = output else {
        nodes[node].events.append(Event(at: now, output: output))
        continue
      }
      let isV6 = to.address?.isIPv6 ?? false
      let from = isV6 ? nodes[node].v6 ?? nodes[node].route : nodes[node].route
      let flight = Flight(datagram: datagram, from: from, to: to, arrivesAt: now + delay)
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
          give(node) { [now] in $0.tick(at: now) }
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
        receive(node, flight)
      }
    }
  }
}

extension LinkWorld {
  /// Two nodes with a link that is up and idle.
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

  /// Restarts a node, with the same identity and address and no stored state.
  func restart(_ node: Int, boot: UInt64) {
    let identity = nodes[node].identity
    nodes[node].makeEngine = { Self.engine(identity, boot: boot, seed: 99) }
    nodes[node].inputs = []
    nodes[node].engine = nodes[node].makeEngine()
    nodes[node].bootID = boot
  }
}
