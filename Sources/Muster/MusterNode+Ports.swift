import MusterBase
import MusterCore
import MusterNetwork

/// Port mapping at the gateway: requested by nodes that look for others beyond their network,
/// and by no others: a node that stays on its LAN asks for no mapping.
extension MusterNode {
  private var looksBeyond: Bool {
    configuration.offersRendezvous || !rendezvousNames.endpoints.isEmpty || dht != nil
  }

  /// Gateways map to IPv4 addresses other than loopback.
  private var canBeMapped: Bool {
    sockets.bound.contains { !$0.isIPv6 && !$0.isLoopback }
  }

  /// Asks for the mapping, or renews it, when it is time; called every few seconds.
  func maintainPortMapping() {
    guard configuration.mapsPorts, looksBeyond, canBeMapped, !isStopping,
      portKeeping.begin(at: now)
    else { return }
    let mapper =
      portMapper
      ?? PortMapper(
        port: sockets.port, interfaces: configuration.interfaces, bound: sockets.bound)
    portMapper = mapper
    Task {
      let mapping = await mapper.map()
      let isNews = portKeeping.answered(mapping, at: now)
      if isNews, !isStopping { announceOwnAddresses() }
    }
  }

  /// Takes the mapping back, also one that is being asked for: within a second or not at all.
  func closePort() async { await portMapper?.close() }

  /// Tells others where this node can be reached: the mapped address early, so that it is never
  /// left out.
  func announceOwnAddresses() {
    var addresses = ownAddresses
    if let outside = portKeeping.announced {
      addresses.insert(outside, at: min(2, addresses.count))
    }
    perform(node.setOwnAddresses(addresses, at: now))
  }
}
