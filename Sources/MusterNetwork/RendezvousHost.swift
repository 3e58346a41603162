import MusterBase
import MusterCrypto
import MusterDiscovery
import MusterSystem

/// A stand-alone rendezvous server: sockets, a clock and a `RendezvousServer`, without persistent
/// state.
public actor RendezvousHost {
  /// The UDP addresses that the server is bound to.
  public nonisolated let listening: [Address]

  /// The event loop that is also the actor's executor.
  package nonisolated let loop: PollLoop
  private let sockets: Sockets
  private var server = RendezvousServer(entropy: .system)
  private var sweep: PollLoop.Timer?
  private var portKeeping = PortKeeping()
  /// The port mapper; nil until port mapping is requested.
  private var portMapper: PortMapper?
  private var reportMapping: @Sendable (PortMapping) -> Void = { _ in }
  private var isStopping = false

  /// The default UDP port; any other port works as well.
  public static let port: UInt16 = 47_475

  /// The event loop as the actor's executor.
  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    loop.asUnownedSerialExecutor()
  }

  private init(sockets: sending Sockets, loop: PollLoop) {
    self.sockets = sockets
    self.loop = loop
    listening = sockets.bound
  }

  /// Binds `listen` (`HOST:PORT`), or all addresses and `port`, and serves until `stop`. Throws if
  /// the address cannot be bound.
  public static func start(listen: String?) async throws(MusterError) -> RendezvousHost {
    try FileLimit.check()
    let address = try listen.map { text throws(MusterError) in try Sockets.listenAddress(text) }
    let loop = try FileLimit.loop("muster-rdv")
    let reference = HostReference()
    let sockets = try Sockets.open(listen: address, port: port, lan: false, on: loop) { datagrams in
      reference.host?.assumeIsolated { host in
        for datagram in datagrams { host.received(datagram.bytes, from: datagram.source) }
      }
    }
    let host = RendezvousHost(sockets: sockets, loop: loop)
    // The reference is set on the event loop, where the handlers read it: a datagram may have
    // arrived already.
    await loop.submit { reference.host = host }
    await host.begin()
    return host
  }

  private func begin() {
    sweep = loop.every(.seconds(5)) { [weak self] in
      self?.assumeIsolated {
        $0.server.tick(at: BootClock.now)
        $0.maintainPortMapping()
      }
    }
  }

  /// Starts port mapping at the gateway, unless no IPv4 address other than loopback is bound.
  /// `report` is called with the first mapping that is reachable from outside and with each later
  /// change.
  public func mapPort(report: @escaping @Sendable (PortMapping) -> Void) {
    guard listening.contains(where: { !$0.isIPv6 && !$0.isLoopback }) else { return }
    portMapper = PortMapper(port: sockets.port, interfaces: [], bound: listening)
    reportMapping = report
    maintainPortMapping()
  }

  private func maintainPortMapping() {
    guard let portMapper, !isStopping, portKeeping.begin(at: BootClock.now) else { return }
    Task {
      let mapping = await portMapper.map()
      let isNews = portKeeping.answered(mapping, at: BootClock.now)
      if isNews, !isStopping, let mapping, mapping.leadsOutside { reportMapping(mapping) }
    }
  }

  private func received(_ datagram: [UInt8], from source: Address) {
    let outputs = server.receive(
      datagram, from: source, seconds: WallClock.milliseconds / 1000, at: BootClock.now)
    for case .send(let answer, let address) in outputs { sockets.enqueue(answer, to: address) }
    sockets.flush()
  }

  /// Closes the sockets and deletes the port mapping.
  public func stop() async {
    isStopping = true
    sweep?.cancel()
    await portMapper?.close()
    sockets.close()
  }
}

/// A weak reference that breaks the cycle between a host and its sockets' handlers.
private final class HostReference: @unchecked Sendable {
  // Written once, on the event loop, and read only there.
  weak var host: RendezvousHost?
}
