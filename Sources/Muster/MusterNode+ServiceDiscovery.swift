import MusterBase
import MusterDevices
import MusterNetwork

/// Where others may be, by who says so.
struct PeerPlaces {
  /// What the names given by the user, or by an invite, stand for now.
  var named: [Address] = []
  /// What DNS-SD names.
  var services: [Address] = []
  var discovery: ServiceDiscovery?

  /// Those given by the user first: what strangers say does not push them out.
  var all: [Address] { named + services }
}

/// DNS-SD: places that it names are announced to like any others, and so, whoever named them, lead
/// to members only.
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
    indices.discovery = ServiceDiscovery(
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
    indices.services = services
    perform(node.setPeers(indices.all, at: now))
  }

  /// Takes the service from the network.
  func stopDiscoveringServices() async {
    guard let discovery = indices.discovery else { return }
    indices.discovery = nil
    // Ending it may block.
    _ = await WorkerThread.result("muster-dns-sd", within: Self.withdrawal) { discovery.stop() }
  }
}
