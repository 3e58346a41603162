/// How datagrams get to a peer: straight to an address of the peer, or through a member that relays.
///
/// A relayed route names the far end beside the relay, so that the route alone says where a datagram
/// goes: an engine answers a handshake over a route before it knows who sent it. The channel is the
/// one in which both ends are neighbours of the relay; the same relay in another channel is another
/// route, because its link there may be down.
///
/// Direct routes come before relayed ones, then addresses and ids decide.
public enum Route: Hashable, Comparable, Sendable {
  case direct(Address)
  case relayed(to: NodeID, by: NodeID, in: ChannelID)

  /// The address of the far end; nil for a relayed route.
  public var address: Address? {
    if case .direct(let address) = self { address } else { nil }
  }

  /// The member that relays; nil for a direct route.
  public var relay: NodeID? {
    if case .relayed(_, let relay, _) = self { relay } else { nil }
  }

  public var isDirect: Bool {
    if case .direct = self { true } else { false }
  }

  /// Whether a datagram over this route goes to one host.
  public var isUnicast: Bool {
    switch self {
    case .direct(let address): address.isUnicast
    case .relayed(let peer, let relay, _): peer != relay
    }
  }

  /// Whether the route may lead to `peer`: any address may, a relayed route names its far end.
  public func mayLead(to peer: NodeID) -> Bool {
    if case .relayed(let end, _, _) = self { end == peer } else { true }
  }
}

extension Route: CustomStringConvertible {
  /// `192.0.2.1:4000`, or `via` and the short id of the relay.
  public var description: String {
    switch self {
    case .direct(let address): address.description
    case .relayed(_, let relay, _): "via \(relay.short)"
    }
  }
}
