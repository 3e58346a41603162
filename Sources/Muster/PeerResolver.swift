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

  /// What the endpoints stand for now; names that do not resolve are left out.
  func resolve() async -> [Address] {
    var addresses: [Address] = []
    for endpoint in endpoints {
      let found = await Self.lookUp(endpoint)
      addresses += found.prefix(Self.addressesPerName).filter { !addresses.contains($0) }
    }
    return addresses
  }

  private static func lookUp(_ endpoint: Endpoint) async -> [Address] {
    let literal = endpoint.host.contains(":") ? "[\(endpoint.host)]" : endpoint.host
    if let address = Address("\(literal):\(endpoint.port)") { return [address] }
    let found = try? await NIOThreadPool.singleton.runIfActive {
      try SocketAddress.makeAddressResolvingHost(endpoint.host, port: Int(endpoint.port))
    }
    return found.flatMap { Address($0) }.map { [$0] } ?? []
  }
}
