/// The route of datagrams to a peer: directly to one of its addresses, or through a relaying
/// member.
///
/// A relayed route names the peer in addition to the relay, so that the route alone determines the
/// destination of a datagram: an engine answers a handshake over a route before it knows the
/// sender. The channel is one in which both ends are neighbours of the relay. The same relay in
/// another channel is a different route, because its link there may be down.
///
/// Direct routes sort before relayed routes; direct routes are ordered by address, relayed routes
/// by peer, relay and channel.
public enum Route: Hashable, Comparable, Sendable {
  /// The route to an address of the peer.
  case direct(Address)
  /// The route through the member `by`, which is a neighbour of both ends in this channel.
  case relayed(to: NodeID, by: NodeID, in: ChannelID)

  /// The address of the far end; nil for a relayed route.
  public var address: Address? {
    if case .direct(let address) = self { address } else { nil }
  }

  /// The relaying member; nil for a direct route.
  public var relay: NodeID? {
    if case .relayed(_, let relay, _) = self { relay } else { nil }
  }

  /// True if the route leads to an address of the peer, not through a relaying member.
  public var isDirect: Bool {
    if case .direct = self { true } else { false }
  }

  /// Whether the route leads to a single host; false for a relayed route whose relay is the peer
  /// itself.
  public var isUnicast: Bool {
    switch self {
    case .direct(let address): address.isUnicast
    case .relayed(let peer, let relay, _): peer != relay
    }
  }

  /// Whether the route can lead to `peer`: a direct route can lead to any peer, a relayed route
  /// only to its far end.
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
