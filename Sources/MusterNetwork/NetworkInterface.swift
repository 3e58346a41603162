import CMusterShims
import Glibc
import MusterBase

/// One address of one network interface that is up.
public struct NetworkInterface: Equatable, Sendable {
  public var name: String
  public var index: UInt32
  /// Port 0; a link-local address has its zone.
  public var address: Address
  /// Of an IPv4 address on a network that has one.
  public var broadcast: Address?
  public var isLoopback: Bool
  public var supportsMulticast: Bool
  public var mtu: Int
  /// A privacy address (RFC 8981), replaced from time to time: announced after the lasting ones.
  public var isTemporary: Bool

  /// Addresses of interfaces; those that are not usable yet or no longer are left out.
  package static let capacity = 128

  /// What the kernel lists now, in its order.
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
    broadcast = nil
    if raw.family == AF_INET, raw.flags & UInt32(MUSTER_INTERFACE_BROADCAST) != 0 {
      let bytes = withUnsafeBytes(of: raw.broadcast) { Array($0) }
      broadcast = Address(hostBytes: bytes, zone: 0, port: 0)
    }
    isLoopback = raw.flags & UInt32(MUSTER_INTERFACE_LOOPBACK) != 0
    supportsMulticast = raw.flags & UInt32(MUSTER_INTERFACE_MULTICAST) != 0
    mtu = Int(raw.mtu)
    isTemporary = raw.is_temporary != 0
  }
}
