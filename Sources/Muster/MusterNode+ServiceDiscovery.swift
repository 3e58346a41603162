import MusterBase
import MusterDevices
import MusterNetwork

/// Addresses at which other nodes may be, by where they are known from.
struct PeerAddresses {
  /// The addresses of names given by the user or by an invite.
  var named: [Address] = []
  /// The addresses found by DNS-SD.
  var services: [Address] = []
  var discovery: ServiceDiscovery?

  /// The user's own first, so that addresses from unknown hosts do not displace them.
  var all: [Address] { named + services }
}

/// DNS-SD: announcements go to the addresses that it finds as to any others. An announcement is
/// sealed, so that an address that somebody invented leads to nothing.
extension MusterNode {
  /// A hung daemon must not hold up a node that leaves; that it goes is noticed there anyway.
  private static let withdrawal = Duration.milliseconds(300)

  func discoverServices() {
    guard configuration.dnsServiceDiscovery else { return }
    guard sockets.bound.contains(where: { !$0.isLoopback }) else {
      return emit(
        .warning(
          MusterError(
            "DNS-SD is not used: this node is on the loopback interface only",
            hint: "leave --listen away, or give it another address")))
    }
    let loop = loop
    peerAddresses.discovery = ServiceDiscovery(
      port: sockets.port, interfaces: configuration.interfaces,
      onChange: { [weak self] addresses in
        loop.execute { [weak self] in self?.assumeIsolated { $0.found(services: addresses) } }
      },
      onWarning: { [weak self] warning in
        loop.execute { [weak self] in self?.assumeIsolated { $0.emit(.warning(warning)) } }
      })
  }

  private func found(services: [Address]) {
    guard !isStopping else { return }
    peerAddresses.services = services
    perform(node.setPeers(peerAddresses.all, at: now))
  }

  /// Takes the service from the network.
  func stopDiscoveringServices() async {
    guard let discovery = peerAddresses.discovery else { return }
    peerAddresses.discovery = nil
    // Ending it may block.
    _ = await WorkerThread.result("muster-dns-sd", within: Self.withdrawal) { discovery.stop() }
  }
}
