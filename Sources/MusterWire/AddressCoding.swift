import MusterBase

extension Writer {
  /// Writes an address. Layout in bytes: family 1 (value 4 or 6), host 4 or 16, port 2. The IPv6
  /// zone is omitted, because interface indices are local to a machine.
  public mutating func address(_ address: Address) {
    switch address.host {
    case .v4(let ip):
      u8(4)
      u32(ip)
    case .v6(let high, let low, _):
      u8(6)
      u64(high)
      u64(low)
    }
    u16(address.port)
  }
}

extension Reader {
  /// Reads an address as written by `Writer.address`; throws `unsupported` for any other family.
  public mutating func address() throws(WireError) -> Address {
    let host: Address.Host
    switch try u8() {
    case 4: host = .v4(try u32())
    case 6: host = .v6(high: try u64(), low: try u64(), zone: 0)
    default: throw .unsupported
    }
    return Address(host: host, port: try u16())
  }
}
