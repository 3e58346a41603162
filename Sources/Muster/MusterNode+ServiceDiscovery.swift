import MusterBase
import MusterDiscovery
import MusterNetwork

/// The candidate addresses of other nodes, by source.
struct PeerAddresses {
  /// The addresses of the names given by the user or an invite.
  var named: [Contact] = []
  /// The addresses found by DNS-SD.
  var services: [Address] = []
  var discovery: ServiceDiscovery?

  /// All contacts, `named` first, so that unknown hosts cannot displace the user's addresses.
  var all: [Contact] { named + services.map { Contact($0) } }
}

/// Service discovery by DNS-SD (RFC 6763), which finds further addresses to send announcements to.
/// Announcements are sealed, so a host at a forged address learns nothing.
extension MusterNode {
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
    finding.addresses.discovery = ServiceDiscovery(
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
    finding.addresses.services = services
    perform(node.setPeers(finding.addresses.all, at: now))
  }

  /// Withdraws this node's service and stops browsing.
  func stopDiscoveringServices() async {
    await finding.addresses.discovery?.stop()
    finding.addresses.discovery = nil
  }
}
