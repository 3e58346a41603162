import MusterBase
import MusterCore
import MusterNetwork

/// Methods for tracking changes of this machine's network interfaces.
extension MusterNode {
  /// The delay that combines the kernel's separate reports of a new address and its routes.
  private static let changesBelongTogether = Duration.milliseconds(10)
  private static let changesWait = Duration.milliseconds(500)

  func updateInterfaces() {
    let all = NetworkInterface.list()
    let chosen = configuration.interfaces
    let usable = chosen.isEmpty ? all : all.filter { chosen.contains($0.name) }
    guard usable != interfaces else { return }
    interfaces = usable
    sockets.joinGroups(on: usable)
    portKeeping.addressesChanged(at: now)
    announceOwnAddresses()
  }

  func watchNetwork() {
    networkChanges = NetworkChanges.watch(on: loop) { [weak self] in
      self?.assumeIsolated { $0.networkChanged() }
    }
  }

  private func networkChanged() {
    guard !isLookingAgain, !isStopping else { return }
    isLookingAgain = true
    let delay = looks.take(at: now) ? Self.changesBelongTogether : Self.changesWait
    loop.schedule(at: now + delay) { [weak self] in
      self?.assumeIsolated { shell in
        shell.isLookingAgain = false
        guard !shell.isStopping else { return }
        shell.updateInterfaces()
        // Routes may have changed although addresses have not.
        shell.perform(shell.node.pathsChanged(at: shell.now))
      }
    }
  }

  /// The addresses at which this node can receive, temporary addresses (RFC 8981) last; loopback
  /// and link-local addresses only if there are no others. A socket bound to one host address
  /// receives only at that address.
  var ownAddresses: [Address] {
    let bound = sockets.bound
    let own = interfaces.filter { interface in
      bound.contains {
        $0.isIPv6 == interface.address.isIPv6
          && ($0.isUnspecified || $0.host == interface.address.host)
      }
    }
    let outside = own.filter { !$0.isLoopback && !$0.address.isLinkLocal }
    let ranked = outside.filter { !$0.isTemporary } + outside.filter(\.isTemporary)
    return (ranked.isEmpty ? own : ranked).map {
      Address(host: $0.address.host, port: sockets.port).withoutZone
    }
  }
}
