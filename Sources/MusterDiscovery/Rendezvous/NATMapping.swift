import MusterBase

/// The address mapping of the NAT between this host and other hosts (RFC 4787 section 4.1),
/// inferred from the source addresses that rendezvous servers saw.
///
/// The NAT's filtering behaviour (section 5) cannot be inferred from these addresses: that would
/// require answers from a second address of the same server.
public struct NATMapping: Equatable, Sendable {
  /// The kinds of mapping; raw values as in `muster doctor --json`.
  public enum Kind: String, Sendable, CaseIterable {
    /// No translation: the observed address is the local one.
    case none
    /// The address is translated, the port is preserved.
    case portKept = "port-kept"
    /// The port is translated with endpoint-independent mapping: the same port for all
    /// destinations.
    case onePort = "one-port"
    /// The port is translated with address-dependent or address- and port-dependent mapping
    /// ("symmetric NAT").
    case portPerDestination = "port-per-destination"
    /// The port is translated; with a single destination the mapping behaviour is unknown.
    case unknown
  }

  /// A request from a socket of this host, and the source address that the answer reported.
  public struct Observation: Equatable, Sendable {
    /// The local address of the socket.
    public var local: Address
    /// The address of the rendezvous server that received the request.
    public var destination: Address
    /// The source address that the server saw.
    public var seen: Address

    public init(local: Address, destination: Address, seen: Address) {
      self.local = local
      self.destination = destination
      self.seen = seen
    }

    fileprivate var isTranslated: Bool { seen.withoutZone != local.withoutZone }
    fileprivate var keepsPort: Bool { seen.port == local.port }
  }

  /// The inferred kind of mapping.
  public let kind: Kind
  /// Whether the result applies to other destinations: the address was observed from outside this
  /// network and, if translated, by two hosts. A single difference of ports suffices for
  /// `portPerDestination`.
  public let isCertain: Bool
  /// The external addresses of this host, in ascending order, with port 0; several if there are
  /// several uplinks.
  public let outside: [Address]
  /// Whether the provider shares addresses between customers (carrier-grade NAT, RFC 6598).
  public let isShared: Bool

  /// Whether only rendezvous servers in the same private network answered, which reveals nothing
  /// about the mapping to the Internet.
  public var isLocal: Bool { !outside.contains(where: \.isGlobal) }

  /// Infers the mapping from observations of one address family; nil if there are none.
  public init?(_ observations: [Observation]) {
    // A rendezvous server in this network does not see the translation of a NAT at its edge.
    let far = observations.filter(\.seen.isGlobal)
    let telling = far.isEmpty ? observations : far
    guard !telling.isEmpty else { return nil }
    outside = telling.map(\.seen.bare).sorted().reduce(into: []) {
      if $0.last != $1 { $0.append($1) }
    }
    let mapped = telling.filter(\.isTranslated)
    // Only translated addresses count: private networks over the Internet (VPNs) also use this
    // range.
    isShared = mapped.contains { $0.local.isOfSharedSpace || $0.seen.isOfSharedSpace }
    guard !mapped.isEmpty else {
      kind = .none
      isCertain = !far.isEmpty
      return
    }
    let pairs = Self.pairs(of: mapped)
    let isSameElsewhere =
      !far.isEmpty && pairs.contains { $0.destination.bare != $1.destination.bare }
    if pairs.contains(where: { $0.seen.port != $1.seen.port }) {
      kind = .portPerDestination
      isCertain = true
    } else if mapped.allSatisfy(\.keepsPort) {
      kind = .portKept
      isCertain = isSameElsewhere
    } else {
      kind = pairs.isEmpty ? .unknown : .onePort
      isCertain = isSameElsewhere
    }
  }

  /// The comparable pairs of observations: one socket and one external address, two destinations.
  private static func pairs(of observations: [Observation]) -> [(Observation, Observation)] {
    observations.indices.flatMap { index in
      observations[(index + 1)...].compactMap { other in
        let one = observations[index]
        let isPair =
          one.local == other.local && one.destination != other.destination
          && one.seen.bare == other.seen.bare
        return isPair ? (one, other) : nil
      }
    }
  }
}

extension Address {
  /// The address of the host only, without port and zone.
  fileprivate var bare: Address {
    var result = withoutZone
    result.port = 0
    return result
  }

  /// The shared address space of carrier-grade NATs, 100.64.0.0/10 (RFC 6598).
  fileprivate var isOfSharedSpace: Bool {
    if case .v4(let ip) = host { ip >> 22 == 0x6440 >> 6 } else { false }
  }

  /// Whether the address is globally reachable: not private (RFC 1918), unique local (RFC 4193) or
  /// shared (RFC 6598).
  fileprivate var isGlobal: Bool {
    switch host {
    case .v4(let ip):
      let isPrivate = ip >> 24 == 10 || ip >> 20 == 0xAC1 || ip >> 16 == 0xC0A8
      return !isPrivate && !isOfSharedSpace && !isLoopback && !isLinkLocal
    case .v6(let high, _, _): return high >> 57 != 0x7E && !isLoopback && !isLinkLocal
    }
  }
}
