import CMusterShims
import MusterBase
import MusterDiscovery
import MusterSystem
import MusterWire

/// The node's UDP sockets: one port for all traffic, on IPv4 and IPv6, and the discovery port that
/// the nodes of a host share. Confined to the node's event loop; closed with this object.
package final class Sockets {
  /// The multicast groups and port of `docs/PROTOCOL.md`: IPv4 organisation-local scope (RFC 2365),
  /// IPv6 link-local scope (RFC 4291 section 2.7).
  package enum Discovery {
    /// The UDP port of announcements on the local network.
    package static let port: UInt16 = 47_474
    /// The IPv4 group 239.192.77.83.
    package static let groupV4 = Address(host: .v4(0xEFC0_4D53), port: port)
    /// The IPv6 group ff02::4d53.
    package static let groupV6 = Address(
      host: .v6(high: 0xFF02_0000_0000_0000, low: 0x4D53, zone: 0), port: port)
  }

  /// The requested socket buffer size: 2 MiB, the volume of one second of a busy call. The kernel
  /// may grant less.
  private static let bufferBytes: Int32 = 2 << 20

  /// The most system calls that read one socket before the loop turns to other work.
  private static let readsInTurn = 4

  private var v4: PollLoop.Watch?
  private var v6: PollLoop.Watch?
  private var discoveryV4: PollLoop.Watch?
  private var discoveryV6: PollLoop.Watch?
  private var batch = DatagramBatch()
  /// Whether segmented sends are used; false once the kernel has refused one.
  private var canSegment = true
  /// Whether datagrams say of which class they are; false as well once the kernel has refused it.
  package var marksClasses = true

  /// The number of bytes of UDP payload that the kernel has accepted.
  package private(set) var bytesSent: UInt64 = 0
  /// The node's UDP port.
  package private(set) var port: UInt16 = 0

  deinit { close() }

  /// The bound addresses, as listed in the event `ready`.
  package private(set) var bound: [Address] = []

  /// Binds `listen`, or all addresses on `port` (0 for any free port) if `listen` is nil. `receive`
  /// is called on the loop with the datagrams of a turn together, in the order of arrival at each
  /// socket, so that their outputs can be sent together. Throws if the address cannot be bound.
  package static func open(
    listen: Address?, port: UInt16 = 0, lan: Bool, on loop: PollLoop,
    receive: @Sendable @escaping ([ReceivedDatagram]) -> Void
  ) throws(MusterError) -> sending Sockets {
    let sockets = Sockets()
    let (v4, v6, port) = try bindPair(listen, port: port)
    sockets.port = port
    let incoming = Incoming(receive)
    func watch(_ descriptor: Int32) -> PollLoop.Watch? {
      descriptor < 0 ? nil : loop.watch(descriptor) { incoming.read(descriptor) }
    }
    sockets.bound = [v4, v6].compactMap { $0 < 0 ? nil : localAddress($0) }
    (sockets.v4, sockets.v6) = (watch(v4), watch(v6))
    guard lan else { return sockets }
    // These sockets are shared by all nodes of the host, each of which receives multicast and
    // broadcast datagrams (socket(7), SO_REUSEADDR).
    sockets.discoveryV4 = watch(udp(Address(host: .v4(0), port: Discovery.port), reuse: true))
    sockets.discoveryV6 = watch(
      udp(Address(host: .v6(high: 0, low: 0, zone: 0), port: Discovery.port), reuse: true))
    return sockets
  }

  /// What the sockets of a node receive. Confined to the loop.
  private final class Incoming: @unchecked Sendable {
    private let reader = DatagramReader()
    private var datagrams: [ReceivedDatagram] = []
    private let receive: @Sendable ([ReceivedDatagram]) -> Void

    init(_ receive: @escaping @Sendable ([ReceivedDatagram]) -> Void) { self.receive = receive }

    /// Returns whether more may wait.
    func read(_ descriptor: Int32) -> Bool {
      var hasMore = true
      for _ in 0..<Sockets.readsInTurn where hasMore {
        hasMore = reader.read(descriptor, into: &datagrams)
      }
      if !datagrams.isEmpty { receive(datagrams) }
      datagrams.removeAll(keepingCapacity: true)
      return hasMore
    }
  }

  /// Parses the value of `--listen`. Names are not resolved, because the value is an address of
  /// this machine.
  package static func listenAddress(
    _ text: String, option: String = "--listen"
  ) throws(MusterError) -> Address {
    let endpoint = try PeerResolver.Endpoint(text, option: option)
    guard let address = Address(endpoint.text) else {
      throw MusterError(
        "\"\(text)\" is not an address of this machine",
        hint: "\(option) takes an IP address and a port, such as 0.0.0.0:4711", kind: .usage)
    }
    return address
  }

  /// Whether the discovery port is bound on at least one family.
  package var hasDiscoveryPort: Bool { discoveryV4 != nil || discoveryV6 != nil }

  private static func bindPair(
    _ listen: Address?, port wanted: UInt16
  ) throws(MusterError) -> (Int32, Int32, UInt16) {
    if let listen {
      let descriptor = udp(listen, reuse: false)
      guard descriptor >= 0 else { throw bindFailure(listen, -descriptor) }
      let port = listen.port != 0 ? listen.port : localPort(descriptor)
      return listen.isIPv6 ? (-1, descriptor, port) : (descriptor, -1, port)
    }
    // Both families use the same port. The first bind chooses the port, which may be taken in the
    // other family.
    for _ in 0..<16 {
      let any = Address(host: .v4(0), port: wanted)
      let v4 = udp(any, reuse: false)
      guard v4 >= 0 else {
        if wanted != 0 { throw bindFailure(any, -v4) }
        continue
      }
      let port = localPort(v4)
      let v6 = udp(Address(host: .v6(high: 0, low: 0, zone: 0), port: port), reuse: false)
      if v6 == -EADDRINUSE {
        MusterSystem.close(v4)
        if wanted != 0 { throw bindFailure(any, EADDRINUSE) }
        continue
      }
      return (v4, v6, port)  // v6 is negative on hosts without IPv6
    }
    throw MusterError(
      "no free UDP port", hint: "end other programs, or choose a port with --listen HOST:PORT")
  }

  private static func bindFailure(_ address: Address, _ code: Int32) -> MusterError {
    switch code {
    case EADDRINUSE:
      MusterError(
        "UDP port \(address.port) is in use",
        hint: "choose another with --listen HOST:PORT, or leave --listen away for a free one")
    case EADDRNOTAVAIL:
      MusterError(
        "\(address.hostText) is not an address of this machine",
        hint: "see them with muster doctor")
    default:
      MusterError(
        "cannot listen on \(address) (\(SystemError.text(of: code)))",
        hint: "choose another with --listen HOST:PORT")
    }
  }

  /// Opens a non-blocking UDP socket bound to `address`; returns the negative errno on failure.
  /// With `reuse`, other sockets can share the port.
  package static func udp(_ address: Address, reuse: Bool) -> Int32 {
    address.socketAddress.withSockAddr { pointer, length in
      muster_udp_open(
        address.isIPv6 ? AF_INET6 : AF_INET, pointer, UInt32(length), reuse ? 1 : 0, 1, bufferBytes)
    }
  }

  private static func localPort(_ descriptor: Int32) -> UInt16 {
    localAddress(descriptor)?.port ?? 0
  }

  /// The address that a socket is bound to; for a connected socket, its source address. Nil on
  /// failure.
  package static func localAddress(_ descriptor: Int32) -> Address? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
        getsockname(descriptor, raw, &length) == 0 ? Address(raw) : nil
      }
    }
  }

  // MARK: Sending

  /// Queues a datagram, to be sent by the next `flush` at the latest. Consecutive datagrams of one
  /// size and class to one address, such as the packets of a frame, are sent in one system call.
  package func enqueue(
    _ datagram: [UInt8], to address: Address, as serviceClass: ServiceClass = .standard
  ) {
    if !batch.append(datagram, to: address, as: serviceClass) {
      flush()
      _ = batch.append(datagram, to: address, as: serviceClass)
    }
  }

  /// Sends the queued datagrams. A datagram that the kernel does not accept is lost, as on the
  /// network. The send bypasses swift-nio, which closes the socket on a temporary lack of a route.
  package func flush() {
    guard let address = batch.address, let socket = address.isIPv6 ? v6 : v4 else {
      batch.clear()
      return
    }
    let isSegmented = batch.bytes.count > batch.segment
    if !isSegmented || !canSegment {
      transmitEach(socket, address)
    } else {
      let result = transmitBatch(
        batch.bytes[...], socket, address, segment: UInt16(batch.segment))
      // EIO: the device has no checksum offload; EINVAL, ENOPROTOOPT: the kernel is older than
      // 4.18.
      if [-EIO, -EINVAL, -ENOPROTOOPT].contains(result) {
        canSegment = false
        transmitEach(socket, address)
      }
    }
    batch.clear()
  }

  private func transmitEach(_ socket: PollLoop.Watch, _ address: Address) {
    var rest = batch.bytes[...]
    while !rest.isEmpty {
      transmitBatch(rest.prefix(batch.segment), socket, address)
      rest = rest.dropFirst(batch.segment)
    }
  }

  /// Sends bytes of the batch, marked with its class where that is possible: as a container or a
  /// filter may forbid it, what is refused is sent again without.
  @discardableResult
  private func transmitBatch(
    _ bytes: ArraySlice<UInt8>, _ socket: PollLoop.Watch, _ address: Address, segment: UInt16 = 0
  ) -> Int32 {
    let mark = marksClasses ? batch.serviceClass.trafficClass : 0
    func send(_ trafficClass: UInt8) -> Int32 {
      transmit(
        bytes, socket, address, interface: address.zone, source: nil, segment: segment,
        trafficClass: trafficClass)
    }
    let result = send(mark)
    guard mark != 0, [-EINVAL, -EPERM, -EACCES, -ENOPROTOOPT].contains(result) else {
      return result
    }
    let plain = send(0)
    if plain == 0 { marksClasses = false }
    return plain
  }

  /// Sends by multicast and broadcast on every given interface. Errors are ignored per interface,
  /// because an interface can vanish at any time.
  package func broadcast(_ datagram: [UInt8], via interfaces: [NetworkInterface]) {
    var hasMulticastV6: [UInt32] = []
    for interface in interfaces {
      if interface.address.isIPv6 {
        guard let v6, interface.supportsMulticast, !hasMulticastV6.contains(interface.index) else {
          continue
        }
        hasMulticastV6.append(interface.index)
        transmit(datagram[...], v6, Discovery.groupV6, interface: interface.index, source: nil)
      } else if let v4 {
        let source = interface.address
        // The loopback interface supports multicast although it lacks the flag.
        if interface.supportsMulticast || interface.isLoopback {
          transmit(
            datagram[...], v4, Discovery.groupV4, interface: interface.index, source: source)
        }
        if var broadcast = interface.broadcast {
          broadcast.port = Discovery.port
          transmit(datagram[...], v4, broadcast, interface: interface.index, source: source)
        }
      }
    }
  }

  /// Sends bytes and returns 0 or a negative errno. With `segment`, the kernel splits the bytes
  /// into datagrams of that size; `trafficClass` goes into their IP headers unless it is 0.
  @discardableResult
  private func transmit(
    _ bytes: ArraySlice<UInt8>, _ socket: PollLoop.Watch, _ destination: Address, interface: UInt32,
    source: Address?, segment: UInt16 = 0, trafficClass: UInt8 = 0
  ) -> Int32 {
    let family = destination.isIPv6 ? AF_INET6 : AF_INET
    let result = bytes.withUnsafeBytes { data in
      destination.withHostBytes { host in
        func send(from own: UnsafeRawPointer?) -> Int32 {
          muster_send_via(
            socket.descriptor, family, host, destination.port, interface, own, data.baseAddress,
            UInt32(data.count), segment, trafficClass)
        }
        guard let source else { return send(from: nil) }
        return source.withHostBytes { send(from: $0) }
      }
    }
    if result == 0 { bytesSent &+= UInt64(bytes.count) }
    return result
  }

  /// Joins the discovery groups on every given interface; repeated joins are harmless.
  package func joinGroups(on interfaces: [NetworkInterface]) {
    for interface in interfaces {
      if interface.address.isIPv6 {
        guard let discoveryV6 else { continue }
        Discovery.groupV6.withHostBytes {
          _ = muster_join_group(discoveryV6.descriptor, AF_INET6, $0, interface.index)
        }
      } else if let discoveryV4 {
        Discovery.groupV4.withHostBytes {
          _ = muster_join_group(discoveryV4.descriptor, AF_INET, $0, interface.index)
        }
      }
    }
  }

  /// Closes all sockets, on the loop; no datagram can be sent afterwards.
  package func close() {
    for socket in [v4, v6, discoveryV4, discoveryV6] { socket?.close() }
    (v4, v6, discoveryV4, discoveryV6) = (nil, nil, nil, nil)
  }
}
