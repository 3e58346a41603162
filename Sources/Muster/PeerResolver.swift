import Glibc
import MusterBase
import NIOPosix

/// Turns `HOST:PORT` into addresses, off the event loop, again and again: names may change.
package struct PeerResolver: Sendable {
  /// A host name or address, and a port.
  package struct Endpoint: Equatable, Sendable {
    var host: String
    var port: UInt16

    /// Reads `name:port`, `1.2.3.4:port` or `[::1]:port`. What comes of it has no character that
    /// means something to a shell or a terminal: others write invites, and users copy advice.
    package init(_ text: String, option: String) throws(MusterError) {
      let failure = MusterError(
        "\"\(text)\" is not an address", hint: "\(option) takes HOST:PORT, such as 192.0.2.7:4711",
        kind: .usage)
      guard let colon = text.lastIndex(of: ":"),
        let port = UInt16(text[text.index(after: colon)...])
      else { throw failure }
      var host = String(text[..<colon])
      let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
      if isBracketed { host = String(host.dropFirst().dropLast()) }
      guard let first = host.utf8.first, first != UInt8(ascii: "-"),
        host.utf8.allSatisfy({ Self.isInName($0) || isBracketed && Self.isInAddress($0) })
      else { throw failure }
      self.host = host
      self.port = port
    }

    private static func isInName(_ byte: UInt8) -> Bool {
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "-"):
        true
      default: false
      }
    }

    /// Of an IPv6 address and its zone, besides what is in names.
    private static func isInAddress(_ byte: UInt8) -> Bool {
      byte == UInt8(ascii: ":") || byte == UInt8(ascii: "%")
    }

    /// `HOST:PORT`, to be read again.
    package var text: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
  }

  private(set) var endpoints: [Endpoint]

  /// Takes in more of them, each once; those that are no addresses are left out.
  mutating func add(_ hints: [String], limit: Int) {
    for hint in hints where endpoints.count < limit {
      guard let new = try? Endpoint(hint, option: "the invite"), !endpoints.contains(new) else {
        continue
      }
      endpoints.append(new)
    }
  }

  /// Addresses of one name that are used.
  private static let addressesPerName = 4

  /// What each endpoint stands for now: nothing, if it is a name that does not resolve.
  func resolve() async -> [(endpoint: Endpoint, addresses: [Address])] {
    var found: [(endpoint: Endpoint, addresses: [Address])] = []
    for endpoint in endpoints {
      found.append((endpoint, await Self.lookUp(endpoint)))
    }
    return found
  }

  /// The same, but a name whose look-up takes longer counts as one that does not resolve. Each has
  /// a thread: one name server that does not answer keeps nobody waiting.
  func resolve(within limit: Duration) async -> [(endpoint: Endpoint, addresses: [Address])] {
    let timers = endpoints.map { endpoint in
      let (found, arrival) = AsyncStream<[Address]>.makeStream(bufferingPolicy: .bufferingOldest(1))
      _ = MediaThread("muster-lookup") { arrival.yield(Self.addresses(of: endpoint)) }
      let timer = Task {
        try await Task.sleep(for: limit)
        arrival.yield([])
      }
      return (endpoint, found, timer)
    }
    var result: [(endpoint: Endpoint, addresses: [Address])] = []
    for (endpoint, found, timer) in timers {
      let addresses = await found.first { _ in true } ?? []
      timer.cancel()
      result.append((endpoint, addresses))
    }
    return result
  }

  private static func lookUp(_ endpoint: Endpoint) async -> [Address] {
    if let address = Address(endpoint.text) { return [address] }
    return (try? await NIOThreadPool.singleton.runIfActive { addresses(of: endpoint) }) ?? []
  }

  /// All addresses of a name, those first that the system prefers (RFC 6724). Blocks.
  private static func addresses(of endpoint: Endpoint) -> [Address] {
    if let address = Address(endpoint.text) { return [address] }
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(endpoint.host, nil, &hints, &list) == 0 else { return [] }
    defer { freeaddrinfo(list) }
    var addresses: [Address] = []
    var entry = list
    while let one = entry, addresses.count < addressesPerName {
      if let raw = one.pointee.ai_addr, var address = Address(raw) {
        address.port = endpoint.port
        if !addresses.contains(address) { addresses.append(address) }
      }
      entry = one.pointee.ai_next
    }
    return addresses
  }
}
