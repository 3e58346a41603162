import MusterBase
import MusterCrypto
import MusterDevices
import MusterDiscovery
import NIOCore
import NIOPosix

/// A rendezvous by itself: a socket, a clock and a `RendezvousServer`. It writes nothing anywhere.
public actor RendezvousHost {
  /// The UDP addresses it is bound to.
  public nonisolated let listening: [Address]

  package nonisolated let loop: any EventLoop
  private let sockets: Sockets
  private var server = RendezvousServer(entropy: .system)
  private var sweep: RepeatedTask?
  private var portKeeping = PortKeeping()
  /// nil until the port is to be mapped.
  private var portMapper: PortMapper?
  private var reportMapping: @Sendable (PortMapping) -> Void = { _ in }
  private var isStopping = false

  /// The port without `--listen`; any other does as well.
  public static let port: UInt16 = 47_475

  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    loop.executor.asUnownedSerialExecutor()
  }

  private init(sockets: Sockets, loop: any EventLoop) {
    self.sockets = sockets
    self.loop = loop
    listening = sockets.bound
  }

  /// Binds `listen` (`HOST:PORT`), or every address and `port`, and serves until `stop`.
  public static func start(listen: String?) async throws(MusterError) -> RendezvousHost {
    let address = try listen.map { text throws(MusterError) in try Sockets.listenAddress(text) }
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    let reference = HostReference()
    let sockets = try await Sockets.open(listen: address, port: port, lan: false, on: loop) {
      DatagramHandler { datagram, source in
        reference.host?.assumeIsolated { $0.received(datagram, from: source) }
      }
    }
    let host = RendezvousHost(sockets: sockets, loop: loop)
    // On the loop: a datagram may have come already.
    try? await loop.submit { reference.host = host }.get()
    await host.begin()
    return host
  }

  private func begin() {
    sweep = loop.scheduleRepeatedTask(initialDelay: .seconds(5), delay: .seconds(5)) {
      [weak self] _ in
      self?.assumeIsolated {
        $0.server.tick(at: BootClock.now)
        $0.maintainPortMapping()
      }
    }
  }

  /// From now on has the gateway let others in, where one offers that. `report` hears of the first
  /// mapping that leads outside, and of every other one.
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

  /// Lets go of the port, here and at the gateway.
  public func stop() async {
    isStopping = true
    sweep?.cancel()
    await portMapper?.close()
    for channel in sockets.takeChannels() { try? await channel.close() }
  }
}

/// Breaks the circle of a host that needs its sockets and sockets that need their host.
private final class HostReference: @unchecked Sendable {
  // Written once and read on the event loop.
  package weak var host: RendezvousHost?
}
