import MusterBase

/// What lies between this host and others, by what rendezvous saw of it: how a NAT maps addresses,
/// in the words of RFC 4787.
///
/// Who may come in, its filtering, nobody can tell who was asked: it would take an answer from
/// another address.
public struct NATMapping: Equatable, Sendable {
  public enum Kind: String, Sendable, CaseIterable {
    /// Seen as this host sees itself.
    case none
    /// Another address outside, the port as inside.
    case portKept = "port-kept"
    /// Another port outside, the same for each destination.
    case onePort = "one-port"
    /// Another port outside for each destination.
    case portPerDestination = "port-per-destination"
    /// Another port outside; only one destination is known of.
    case unknown
  }

  /// A question from a socket of this host, and what the answer said.
  public struct Observation: Equatable, Sendable {
    /// Where the question left from, as this host sees it.
    public var local: Address
    /// Who was asked.
    public var destination: Address
    /// Where the question came from, says the one who was asked.
    public var seen: Address

    public init(local: Address, destination: Address, seen: Address) {
      self.local = local
      self.destination = destination
      self.seen = seen
    }

    fileprivate var isTranslated: Bool { seen.withoutZone != local.withoutZone }
    fileprivate var keepsPort: Bool { seen.port == local.port }
  }

  public let kind: Kind
  /// Whether it is the same for others: seen from beyond the own network and, where something is
  /// translated, from two hosts.
  public let isCertain: Bool
  /// The hosts as which this one is seen, in order; port 0. More than one: several ways out.
  public let outside: [Address]
  /// Whether a provider gives many households one address between them (RFC 6598).
  public let isShared: Bool

  /// Whether only hosts of the same private network were asked, which says nothing of what lies
  /// beyond.
  public var isLocal: Bool { !outside.contains(where: \.isGlobal) }

  /// Judges observations of one address family; nil where there are none.
  public init?(_ observations: [Observation]) {
    // A rendezvous of the own network sees no NAT, whatever others see.
    let far = observations.filter(\.seen.isGlobal)
    let telling = far.isEmpty ? observations : far
    guard !telling.isEmpty else { return nil }
    outside = telling.map(\.seen.bare).sorted().reduce(into: []) {
      if $0.last != $1 { $0.append($1) }
    }
    let mapped = telling.filter(\.isTranslated)
    // Not where nothing is translated: private networks over the internet use this space as well.
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

  /// Those that can be compared: two destinations, asked from one socket by one way out.
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
  /// The host alone: no port and no zone.
  fileprivate var bare: Address {
    var result = withoutZone
    result.port = 0
    return result
  }

  /// Of the space that providers share out behind NATs of their own (RFC 6598).
  fileprivate var isOfSharedSpace: Bool {
    if case .v4(let ip) = host { ip >> 22 == 0x6440 >> 6 } else { false }
  }

  /// Whether others anywhere may send there: not an address for one network only (RFC 1918, 4193,
  /// 6598).
  fileprivate var isGlobal: Bool {
    switch host {
    case .v4(let ip):
      let isPrivate = ip >> 24 == 10 || ip >> 20 == 0xAC1 || ip >> 16 == 0xC0A8
      return !isPrivate && !isOfSharedSpace && !isLoopback && !isLinkLocal
    case .v6(let high, _, _): return high >> 57 != 0x7E && !isLoopback && !isLinkLocal
    }
  }
}
