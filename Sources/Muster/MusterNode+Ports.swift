import MusterBase
import MusterCore
import MusterNetwork

/// Port mapping at the gateway, requested only by nodes that look for members beyond their LAN.
extension MusterNode {
  private var looksBeyond: Bool {
    configuration.offersRendezvous || !finding.rendezvous.entries.isEmpty || finding.dht != nil
  }

  /// Whether a socket is bound to an address that a gateway can map to: IPv4 other than loopback.
  private var canBeMapped: Bool {
    sockets.bound.contains { !$0.isIPv6 && !$0.isLoopback }
  }

  /// Requests or renews the mapping when due; called every few seconds.
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

  /// Deletes the mapping, even if its request is still pending; takes at most one second.
  func closePort() async { await portMapper?.close() }

  /// Announces this node's addresses. The mapped address is near the front, so that the limit on
  /// addresses never removes it.
  func announceOwnAddresses() {
    var addresses = ownAddresses
    if let outside = portKeeping.announced {
      addresses.insert(outside, at: min(2, addresses.count))
    }
    perform(node.setOwnAddresses(addresses, at: now))
  }
}
