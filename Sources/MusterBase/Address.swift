/// A UDP address: an IPv4 or IPv6 host and a port.
public struct Address: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// An IP address in host byte order.
  public enum Host: Hashable, Sendable {
    case v4(UInt32)
    /// `zone` is the interface index that scopes a link-local address, else 0.
    case v6(high: UInt64, low: UInt64, zone: UInt32)
  }

  /// The host part.
  public var host: Host
  /// The UDP port in host byte order; 0 is valid as a value but never a destination.
  public var port: UInt16

  public init(host: Host, port: UInt16) {
    self.host = host
    self.port = port
  }

  /// Whether the host is IPv6, IPv4-mapped addresses included.
  public var isIPv6: Bool { if case .v6 = host { true } else { false } }

  /// Whether the host is in 127.0.0.0/8 (RFC 1122 section 3.2.1.3) or ::1 (RFC 4291 section 2.5.3).
  public var isLoopback: Bool {
    switch host {
    case .v4(let ip): ip >> 24 == 127
    case .v6(let high, let low, _): high == 0 && low == 1
    }
  }

  /// Whether the host is 0.0.0.0 or ::, which a socket bound to all addresses of its family
  /// reports.
  public var isUnspecified: Bool {
    switch host {
    case .v4(let ip): ip == 0
    case .v6(let high, let low, _): high == 0 && low == 0
    }
  }

  /// Whether the host is in fe80::/10 (RFC 4291 section 2.5.6) or 169.254.0.0/16 (RFC 3927).
  public var isLinkLocal: Bool {
    switch host {
    case .v4(let ip): ip >> 16 == 0xA9FE
    case .v6(let high, _, _): high >> 54 == 0x3FA
    }
  }

  /// Whether two hosts of one family have their first `bits` bits in common and, where both have
  /// one, the zone; false for no bits, which every host has in common with every other.
  public func sharesPrefix(with other: Address, bits: Int) -> Bool {
    guard bits > 0 else { return false }
    switch (host, other.host) {
    case (.v4(let own), .v4(let ip)): return (own ^ ip).leadingZeroBitCount >= min(bits, 32)
    case (.v6(let ownHigh, let ownLow, let ownZone), .v6(let high, let low, let zone)):
      guard zone == ownZone || zone == 0 || ownZone == 0 else { return false }
      let inHigh = (ownHigh ^ high).leadingZeroBitCount
      let common = inHigh < 64 ? inHigh : 64 + (ownLow ^ low).leadingZeroBitCount
      return common >= min(bits, 128)
    default: return false
    }
  }

  /// The scope in which an address is unique, narrowest first.
  public enum Reach: UInt8, Comparable, Sendable {
    /// The address is valid on this host or network segment only: loopback and link-local
    /// addresses.
    case link
    /// The address is valid within one site: private (RFC 1918) or unique local (RFC 4193).
    case site
    /// The address has any other scope.
    case global

    public static func < (a: Reach, b: Reach) -> Bool { a.rawValue < b.rawValue }
  }

  /// The scope of this address; IPv4-mapped addresses count as global.
  public var reach: Reach {
    if isLoopback || isLinkLocal { return .link }
    switch host {
    case .v4(let ip):
      return ip >> 24 == 10 || ip >> 20 == 0xAC1 || ip >> 16 == 0xC0A8 ? .site : .global
    case .v6(let high, _, _): return high >> 57 == 0x7E ? .site : .global
    }
  }

  /// Whether the address can be the destination of datagrams to a single host; false for multicast,
  /// 0.0.0.0/8, 240.0.0.0/4 (which includes broadcast), :: and port 0.
  public var isUnicast: Bool {
    guard port != 0 else { return false }
    switch host {
    case .v4(let ip): return ip >> 24 != 0 && ip >> 28 != 0xE && ip >> 28 != 0xF
    case .v6(0, let low, _) where low >> 32 == 0xFFFF:
      // An IPv4-mapped address (RFC 4291 section 2.5.5.2) is unicast if and only if the embedded
      // IPv4 address is.
      return Address(host: .v4(UInt32(truncatingIfNeeded: low)), port: port).isUnicast
    case .v6(let high, let low, _): return high >> 56 != 0xFF && !(high == 0 && low == 0)
    }
  }

  /// The index of the interface that scopes a link-local address, else 0.
  public var zone: UInt32 {
    if case .v6(_, _, let zone) = host { zone } else { 0 }
  }

  /// The same address without the zone, for reports to other hosts: interface indices are local
  /// (RFC 4007 section 6).
  public var withoutZone: Address {
    guard case .v6(let high, let low, _) = host else { return self }
    return Address(host: .v6(high: high, low: low, zone: 0), port: port)
  }

  /// Text such as `192.0.2.1:4000` or `[2001:db8::1]:4000`; a zone follows a percent sign.
  public var description: String {
    switch host {
    case .v4: return "\(hostText):\(port)"
    case .v6: return "[\(hostText)]:\(port)"
    }
  }

  /// The host without port or brackets: dotted decimal for IPv4; the form of RFC 5952 for IPv6,
  /// with `%zone` unless the zone is 0.
  public var hostText: String {
    switch host {
    case .v4(let ip):
      return (0..<4).map { String(ip >> UInt32(24 - 8 * $0) & 255) }.joined(separator: ".")
    case .v6(let high, let low, let zone):
      let groups = (0..<8).map { index -> UInt64 in
        (index < 4 ? high : low) >> UInt64(48 - 16 * (index % 4)) & 0xFFFF
      }
      return Self.compressed(groups) + (zone == 0 ? "" : "%\(zone)")
    }
  }

  public static func < (a: Address, b: Address) -> Bool {
    let (x, y) = (a.sortKey, b.sortKey)
    if x.0 != y.0 { return x.0 < y.0 }
    if x.1 != y.1 { return x.1 < y.1 }
    if x.2 != y.2 { return x.2 < y.2 }
    return x.3 < y.3
  }

  private var sortKey: (UInt64, UInt64, UInt32, UInt16) {
    switch host {
    case .v4(let ip): (0, UInt64(ip), 0, port)
    case .v6(let high, let low, let zone): (high | 1 << 63, low, zone, port)
    }
  }

  /// The text form of RFC 5952 section 4: lower case, the longest run of two or more zero groups as
  /// `::`.
  private static func compressed(_ groups: [UInt64]) -> String {
    var best = 0..<0
    var start = 0
    for index in 0...8 where index == 8 || groups[index] != 0 {
      if index - start > max(best.count, 1) { best = start..<index }
      start = index + 1
    }
    func text(_ range: Range<Int>) -> String {
      groups[range].map { String($0, radix: 16) }.joined(separator: ":")
    }
    return best.isEmpty ? text(0..<8) : text(0..<best.lowerBound) + "::" + text(best.upperBound..<8)
  }
}

extension Address {
  /// Parses `1.2.3.4:5`, `[::1]:5` or `[fe80::1%2]:5`; nil for host names and other text.
  public init?(_ text: some StringProtocol) {
    // The standard library's integer parser accepts a leading sign; addresses have none.
    guard !text.contains("+"), let colon = text.lastIndex(of: ":"),
      let port = UInt16(text[text.index(after: colon)...])
    else { return nil }
    var host = text[..<colon]
    if host.first == "[" {
      guard host.last == "]" else { return nil }
      host = host.dropFirst().dropLast()
      guard let v6 = Self.parseV6(host) else { return nil }
      self.init(host: v6, port: port)
    } else {
      guard let v4 = Self.parseV4(host) else { return nil }
      self.init(host: .v4(v4), port: port)
    }
  }

  private static func parseV4(_ text: some StringProtocol) -> UInt32? {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 4 else { return nil }
    var ip: UInt32 = 0
    for part in parts {
      guard part.count <= 3, let byte = UInt8(part) else { return nil }
      ip = ip << 8 | UInt32(byte)
    }
    return ip
  }

  private static func parseV6(_ text: some StringProtocol) -> Host? {
    let zoned = text.split(separator: "%", omittingEmptySubsequences: false)
    guard zoned.count <= 2, let zone = zoned.count == 2 ? UInt32(zoned[1]) : 0 else { return nil }
    let halves = splitDoubleColon(zoned[0])
    guard let halves else { return nil }
    func groups(_ half: Substring) -> [UInt64]? {
      if half.isEmpty { return [] }
      var result: [UInt64] = []
      for part in half.split(separator: ":", omittingEmptySubsequences: false) {
        guard part.count <= 4, let group = UInt64(part, radix: 16) else { return nil }
        result.append(group)
      }
      return result
    }
    guard let head = groups(halves.0) else { return nil }
    var all = head
    if let rest = halves.1 {
      guard let tail = groups(rest), head.count + tail.count < 8 else { return nil }
      all += [UInt64](repeating: 0, count: 8 - head.count - tail.count) + tail
    }
    guard all.count == 8 else { return nil }
    func word(_ slice: ArraySlice<UInt64>) -> UInt64 { slice.reduce(0) { $0 << 16 | $1 } }
    return .v6(high: word(all[0..<4]), low: word(all[4..<8]), zone: zone)
  }

  /// Splits at `::`. The second part is nil without a `::`; the result is nil if `::` occurs twice.
  private static func splitDoubleColon(_ text: some StringProtocol) -> (Substring, Substring?)? {
    let all = Array(text)
    let positions = all.indices.dropLast().filter { all[$0] == ":" && all[$0 + 1] == ":" }
    guard positions.count <= 1 else { return nil }
    guard let position = positions.first else { return (Substring(String(all)), nil) }
    return (Substring(String(all[..<position])), Substring(String(all[(position + 2)...])))
  }
}
