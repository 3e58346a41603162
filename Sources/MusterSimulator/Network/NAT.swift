import MusterBase

/// The NAT behaviour of a home's router for UDP. The kinds are those of `docs/NAT.md`; "mapping"
/// and "filtering" are terms of RFC 4787.
public enum NATKind: String, CaseIterable, Sendable {
  /// No NAT: every host in the home has a public address.
  case none
  /// Endpoint-independent mapping and filtering: one external port for each internal port, open to
  /// any source.
  case full
  /// Endpoint-independent mapping that preserves the port if it is free, with address- and
  /// port-dependent filtering.
  case preserving
  /// Address- and port-dependent mapping and filtering, with a random external port for each
  /// destination.
  case random
  /// UDP is blocked in both directions.
  case blocked
}

/// A router that translates addresses: a state machine without I/O.
///
/// Lifetimes are those of Linux (`nf_conntrack_proto_udp.c`). The router does not hairpin (RFC 4787
/// section 6): a datagram from inside to the router's external address is dropped.
public struct NAT: Sendable {
  /// The lifetime of a flow that has seen no reply.
  public static let unreplied = Duration.seconds(30)
  /// The lifetime of a flow that has seen a reply.
  public static let assured = Duration.seconds(120)
  private static let firstPort: UInt16 = 1024

  /// The traffic between a mapping and one remote address.
  private struct Flow: Sendable {
    let remote: Address
    var isAnswered = false
    var until: Instant
  }

  private struct Mapping: Sendable {
    let inside: Address
    /// The only destination of an address- and port-dependent mapping; nil for an
    /// endpoint-independent one.
    let destination: Address?
    let port: UInt16
    /// The flows that keep the mapping alive; the router removes a mapping without flows.
    var flows: [Flow]

    /// Creates or extends the flow of a datagram that passes in either direction.
    mutating func pass(_ remote: Address, isAnswer: Bool, at now: Instant) {
      let index = flows.firstIndex { $0.remote == remote }
      var flow = index.map { flows[$0] } ?? Flow(remote: remote, until: now)
      flow.isAnswered = flow.isAnswered || isAnswer && index != nil
      flow.until = now + (flow.isAnswered ? NAT.assured : NAT.unreplied)
      if let index { flows[index] = flow } else { flows.append(flow) }
    }
  }

  /// The mapping and filtering behaviour, which `become` changes.
  public private(set) var kind: NATKind
  /// The external address of all hosts behind this router.
  public private(set) var outside: Address.Host
  private var mappings: [Mapping] = []
  private var prng: PRNG

  /// A router without mappings; `seed` determines the random ports it allocates.
  public init(_ kind: NATKind, outside: Address.Host, seed: UInt64) {
    self.kind = kind
    self.outside = outside
    prng = PRNG(seed: seed)
  }

  /// The number of mappings with flows that have not expired.
  public func mappingCount(at now: Instant) -> Int {
    mappings.filter { $0.flows.contains { $0.until > now } }.count
  }

  /// The external source address of a datagram from `inside` to `remote`; nil when the datagram is
  /// dropped.
  public mutating func leave(
    from inside: Address, to remote: Address, at now: Instant
  ) -> Address? {
    switch kind {
    case .none: return inside
    case .blocked: return nil
    case .full, .preserving, .random: break
    }
    expire(at: now)
    let destination = kind == .random ? remote : nil
    let known = mappings.firstIndex { $0.inside == inside && $0.destination == destination }
    let index = known ?? mappings.count
    if known == nil {
      mappings.append(
        Mapping(inside: inside, destination: destination, port: newPort(for: inside), flows: []))
    }
    mappings[index].pass(remote, isAnswer: false, at: now)
    return Address(host: outside, port: mappings[index].port)
  }

  /// The internal destination address of a datagram that arrives from outside; nil when the
  /// datagram is dropped.
  public mutating func enter(
    from remote: Address, to address: Address, at now: Instant
  ) -> Address? {
    switch kind {
    case .none: return address
    case .blocked: return nil
    case .full, .preserving, .random: break
    }
    expire(at: now)
    guard address.host == outside,
      let index = mappings.firstIndex(where: { $0.port == address.port }),
      kind == .full || mappings[index].flows.contains(where: { $0.remote == remote })
    else { return nil }
    mappings[index].pass(remote, isAnswer: true, at: now)
    return mappings[index].inside
  }

  /// Forgets every mapping: all external ports will be new, except those that preserve an internal
  /// port.
  public mutating func rebind() { mappings = [] }

  /// Changes the external address, as a provider may, and voids every mapping.
  public mutating func renumber(_ host: Address.Host) {
    outside = host
    rebind()
  }

  /// Replaces the router with one that has no mappings.
  public mutating func become(_ other: NATKind) {
    kind = other
    rebind()
  }

  private mutating func expire(at now: Instant) {
    for index in mappings.indices { mappings[index].flows.removeAll { $0.until <= now } }
    mappings.removeAll { $0.flows.isEmpty }
  }

  private mutating func newPort(for inside: Address) -> UInt16 {
    func isFree(_ port: UInt16) -> Bool { !mappings.contains { $0.port == port } }
    if kind == .preserving, isFree(inside.port) { return inside.port }
    // There are far more ports than mappings, so a free one is found quickly.
    while true {
      let port = Self.firstPort + UInt16(prng.below(Int(UInt16.max - Self.firstPort)))
      if isFree(port) { return port }
    }
  }
}
