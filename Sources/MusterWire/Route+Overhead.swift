import MusterBase

extension Route {
  /// The bytes that are added to a datagram on its way over this route: the headers of UDP and IP,
  /// and for a relayed route the relay's envelope too. Rates are counted in IP packets, since these
  /// are what a path has to carry.
  public var overheadBytes: Int {
    switch self {
    case .direct(let address): Self.udpHeaderBytes + (address.isIPv6 ? 40 : 20)
    // The route does not name the relay's address, which is taken to be IPv4.
    case .relayed: Self.udpHeaderBytes + 20 + RelayEnvelope.overhead
    }
  }

  private static let udpHeaderBytes = 8
}
