import MusterBase
import NIOCore
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
      let addresses = await Self.lookUp(endpoint)
      found.append((endpoint, Array(addresses.prefix(Self.addressesPerName))))
    }
    return found
  }

  private static func lookUp(_ endpoint: Endpoint) async -> [Address] {
    if let address = Address(endpoint.text) { return [address] }
    let found = try? await NIOThreadPool.singleton.runIfActive {
      try SocketAddress.makeAddressResolvingHost(endpoint.host, port: Int(endpoint.port))
    }
    return found.flatMap { Address($0) }.map { [$0] } ?? []
  }
}
