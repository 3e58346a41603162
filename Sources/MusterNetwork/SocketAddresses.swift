import MusterBase
import MusterSystem
import NIOCore

extension Address {
  /// Converts an address from NIO's representation; nil for families other than IPv4 and IPv6.
  package init?(_ address: SocketAddress) {
    switch address {
    case .v4(let v4):
      self.init(
        host: .v4(UInt32(bigEndian: v4.address.sin_addr.s_addr)),
        port: UInt16(bigEndian: v4.address.sin_port))
    case .v6(let v6):
      let (high, low) = withUnsafeBytes(of: v6.address.sin6_addr) { bytes in
        (
          UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
          UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        )
      }
      self.init(
        host: .v6(high: high, low: low, zone: v6.address.sin6_scope_id),
        port: UInt16(bigEndian: v6.address.sin6_port))
    default: return nil
    }
  }

  /// Converts an address that a system call filled in; nil for families other than IPv4 and IPv6.
  package init?(_ raw: UnsafePointer<sockaddr>) {
    switch Int32(raw.pointee.sa_family) {
    case AF_INET:
      self.init(
        raw.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { SocketAddress($0.pointee) })
    case AF_INET6:
      self.init(
        raw.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { SocketAddress($0.pointee) })
    default: return nil
    }
  }

  /// The address in NIO's representation.
  package var socketAddress: SocketAddress {
    switch host {
    case .v4(let ip):
      var raw = sockaddr_in()
      raw.sin_family = sa_family_t(AF_INET)
      raw.sin_port = port.bigEndian
      raw.sin_addr.s_addr = ip.bigEndian
      return SocketAddress(raw)
    case .v6(let high, let low, let zone):
      var raw = sockaddr_in6()
      raw.sin6_family = sa_family_t(AF_INET6)
      raw.sin6_port = port.bigEndian
      raw.sin6_scope_id = zone
      withUnsafeMutableBytes(of: &raw.sin6_addr) { bytes in
        bytes.storeBytes(of: high.bigEndian, toByteOffset: 0, as: UInt64.self)
        bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
      }
      return SocketAddress(raw)
    }
  }

  /// Passes the 4 or 16 bytes of the host in network order to `body`, without allocating an array.
  package func withHostBytes<R>(_ body: (UnsafeRawPointer) -> R) -> R {
    var words: (UInt64, UInt64)
    switch host {
    case .v4(let ip):
      words = (0, 0)
      withUnsafeMutableBytes(of: &words) { $0.storeBytes(of: ip.bigEndian, as: UInt32.self) }
    case .v6(let high, let low, _): words = (high.bigEndian, low.bigEndian)
    }
    return withUnsafePointer(to: words) { body(UnsafeRawPointer($0)) }
  }

  /// Creates an address from 4 or 16 bytes in network order; nil for other lengths.
  package init?(hostBytes bytes: some Collection<UInt8>, zone: UInt32, port: UInt16) {
    func word(_ bytes: some Collection<UInt8>) -> UInt64 {
      bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }
    switch bytes.count {
    case 4: self.init(host: .v4(UInt32(word(bytes))), port: port)
    case 16:
      self.init(
        host: .v6(high: word(bytes.prefix(8)), low: word(bytes.dropFirst(8)), zone: zone),
        port: port)
    default: return nil
    }
  }
}
