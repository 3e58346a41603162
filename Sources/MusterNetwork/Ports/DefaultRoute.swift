import MusterBase
import MusterSystem

/// The IPv4 default route of this machine.
package struct DefaultRoute: Equatable, Sendable {
  /// The name of the outgoing interface.
  package var interface: String
  /// The gateway's IPv4 address; port 0.
  package var gateway: Address

  /// The maximum number of bytes read from the routing table, which lists default routes first.
  private static let readBytes = 1 << 16
  /// `RTF_UP` and `RTF_GATEWAY` of linux/route.h.
  private static let isUpThroughGateway: UInt32 = 3

  /// The current default route; nil if there is none, or if its interface is not among `interfaces`
  /// (empty for any).
  package static func current(through interfaces: [String]) -> DefaultRoute? {
    guard let file = fopen("/proc/net/route", "re") else { return nil }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: readBytes)
    let count = fread(&bytes, 1, bytes.count, file)
    guard let route = preferred(in: String(decoding: bytes.prefix(count), as: UTF8.self)),
      interfaces.isEmpty || interfaces.contains(route.interface)
    else { return nil }
    return route
  }

  /// The default route with the lowest metric in the format of `/proc/net/route` (proc(5)).
  package static func preferred(in table: String) -> DefaultRoute? {
    var best: (metric: Int, route: DefaultRoute)?
    for line in table.split(separator: "\n").dropFirst() {
      let fields = line.split(whereSeparator: \.isWhitespace)
      guard fields.count >= 8, let destination = UInt32(fields[1], radix: 16),
        let gateway = UInt32(fields[2], radix: 16), let flags = UInt32(fields[3], radix: 16),
        let metric = Int(fields[6]), let mask = UInt32(fields[7], radix: 16),
        destination == 0, mask == 0, flags & isUpThroughGateway == isUpThroughGateway,
        metric < best?.metric ?? .max
      else { continue }
      // The table prints the address, stored in network byte order, as if it were a host-order
      // integer.
      let address = Address(host: .v4(UInt32(bigEndian: gateway)), port: 0)
      best = (metric, DefaultRoute(interface: String(fields[0]), gateway: address))
    }
    return best?.route
  }

  /// This machine's source address towards the gateway, to which mappings point.
  package var ownAddress: Address? {
    let descriptor = Sockets.udp(Address(host: .v4(0), port: 0), reuse: false)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    // Connecting a UDP socket sends nothing. Any port except 0 works; 5351 is that of NAT-PMP.
    var there = gateway
    there.port = 5351
    let isConnected = there.socketAddress.withSockAddr {
      connect(descriptor, $0, socklen_t($1)) == 0
    }
    return isConnected ? Sockets.localAddress(descriptor) : nil
  }
}

extension Address {
  /// Whether the address is reachable from elsewhere: not private (RFC 1918), shared (RFC 6598),
  /// link-local, loopback, multicast or unspecified. Documentation addresses (RFC 5737) pass,
  /// because the tests build networks of such addresses. All IPv6 addresses except loopback and
  /// link-local addresses pass.
  package var isPublic: Bool {
    guard case .v4(let ip) = host else { return !isLoopback && !isLinkLocal }
    let isPrivate =
      ip >> 24 == 10 || ip >> 20 == 0xAC1 || ip >> 16 == 0xC0A8 || ip >> 22 == 0x191
    return !isPrivate && !isLoopback && !isLinkLocal && ip >> 24 != 0 && ip >> 28 < 0xE
  }
}
