import CMusterShims
import MusterBase
import MusterSystem

/// One address of a network interface that is up.
public struct NetworkInterface: Equatable, Sendable {
  /// The interface's name, such as `eth0`.
  public var name: String
  /// The kernel's interface index.
  public var index: UInt32
  /// The address with port 0, and with its zone if it is link-local.
  public var address: Address
  /// The number of bits that the address has in common with all others of its network.
  public var prefixLength: Int
  /// The broadcast address of an IPv4 network; nil for point-to-point links and IPv6.
  public var broadcast: Address?
  /// Whether this is the loopback interface.
  public var isLoopback: Bool
  /// Whether the interface supports multicast.
  public var supportsMulticast: Bool
  /// The MTU in bytes.
  public var mtu: Int
  /// Whether this is a temporary address (RFC 8981), which is replaced regularly and therefore
  /// announced after the stable addresses.
  public var isTemporary: Bool

  /// The maximum number of addresses listed; tentative and deprecated addresses are omitted.
  package static let capacity = 128

  /// The current addresses, in the kernel's order.
  public static func list() -> [NetworkInterface] {
    var raw = [muster_interface](repeating: muster_interface(), count: capacity)
    let count = muster_list_interfaces(&raw, Int32(capacity))
    guard count > 0 else { return [] }
    return raw.prefix(Int(count)).compactMap { NetworkInterface($0) }
  }

  private init?(_ raw: muster_interface) {
    guard raw.flags & UInt32(MUSTER_INTERFACE_UP) != 0, raw.is_tentative == 0,
      raw.is_deprecated == 0
    else { return nil }
    name = withUnsafeBytes(of: raw.name) { bytes in
      String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
    index = raw.index
    let length = raw.family == AF_INET ? 4 : 16
    let bytes = withUnsafeBytes(of: raw.address) { Array($0.prefix(length)) }
    guard var own = Address(hostBytes: bytes, zone: 0, port: 0) else { return nil }
    if own.isLinkLocal, case .v6(let high, let low, _) = own.host {
      own.host = .v6(high: high, low: low, zone: raw.index)
    }
    address = own
    prefixLength = Int(raw.prefix_length)
    broadcast = Self.broadcast(raw, of: own)
    isLoopback = raw.flags & UInt32(MUSTER_INTERFACE_LOOPBACK) != 0
    supportsMulticast = raw.flags & UInt32(MUSTER_INTERFACE_MULTICAST) != 0
    mtu = Int(raw.mtu)
    isTemporary = raw.is_temporary != 0
  }

  /// The broadcast address with port 0: the one that was set, or the last of the network, to which
  /// the kernel has a route all the same.
  private static func broadcast(_ raw: muster_interface, of own: Address) -> Address? {
    guard case .v4(let host) = own.host, raw.flags & UInt32(MUSTER_INTERFACE_BROADCAST) != 0 else {
      return nil
    }
    let set = Address(hostBytes: withUnsafeBytes(of: raw.broadcast) { Array($0) }, zone: 0, port: 0)
    // getifaddrs gives the address itself where none was set.
    if let set, set.host != own.host, set.host != .v4(0) { return set }
    guard 1...30 ~= raw.prefix_length else { return nil }
    return Address(host: .v4(host | UInt32.max >> raw.prefix_length), port: 0)
  }

  /// Whether an address is on this interface's network, where it is reached without a router.
  public func reaches(_ other: Address) -> Bool {
    !isLoopback && address.sharesPrefix(with: other, bits: prefixLength)
  }
}
