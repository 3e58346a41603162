import Glibc
import MusterBase
import NIOPosix

/// Turns `HOST:PORT` into addresses, off the event loop, again and again: names may change.
struct PeerResolver: Sendable {
  /// A host name or address, and a port.
  struct Endpoint: Equatable, Sendable {
    var host: String
    var port: UInt16

    /// Reads `name:port`, `1.2.3.4:port` or `[::1]:port`.
    init(_ text: String, option: String) throws(MusterError) {
      let failure = MusterError(
        "\"\(text)\" is not an address", hint: "\(option) takes HOST:PORT, such as 192.0.2.7:4711",
        kind: .usage)
      guard let colon = text.lastIndex(of: ":"),
        let port = UInt16(text[text.index(after: colon)...])
      else { throw failure }
      var host = String(text[..<colon])
      if host.hasPrefix("[") {
        guard host.hasSuffix("]") else { throw failure }
        host = String(host.dropFirst().dropLast())
      } else if host.contains(":") {
        throw failure
      }
      guard !host.isEmpty else { throw failure }
      self.host = host
      self.port = port
    }

    /// `HOST:PORT`, to be read again.
    var text: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
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
