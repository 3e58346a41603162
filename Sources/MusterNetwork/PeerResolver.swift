import MusterBase
import MusterSystem

/// Resolves `HOST:PORT` off the event loop, repeatedly, because the addresses of a name can change.
package struct PeerResolver: Sendable {
  /// A host name or IP address, and a port.
  package struct Endpoint: Equatable, Sendable {
    /// The host, without brackets.
    package var host: String
    /// The UDP port.
    package var port: UInt16

    /// Parses `name:port`, `1.2.3.4:port` or `[::1]:port`; throws for anything else. Only
    /// characters without meaning to a shell or terminal are accepted, because endpoints come from
    /// invites and appear in advice that users copy. `option` names the source of the text in the
    /// error.
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

    /// Whether a byte may occur in IPv6 addresses and zones, in addition to the bytes of names.
    private static func isInAddress(_ byte: UInt8) -> Bool {
      byte == UInt8(ascii: ":") || byte == UInt8(ascii: "%")
    }

    /// The endpoint in the form `HOST:PORT`, accepted by `init`.
    package var text: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
  }

  /// An endpoint, and the channels whose members may be found through it: those whose invites or
  /// earlier runs named it, or nil for all channels.
  package struct Entry: Equatable, Sendable {
    /// The endpoint to resolve.
    package let endpoint: Endpoint
    /// The channels that it serves; nil for all.
    package fileprivate(set) var channels: [ChannelID]?

    /// Whether the endpoint may learn of this channel.
    package func serves(_ channel: ChannelID) -> Bool { channels?.contains(channel) ?? true }
  }

  /// The endpoints to resolve, with their channels.
  package private(set) var entries: [Entry]
  /// Whether a resolution is under way; there is one at a time.
  package var isBeingResolved = false
  /// The lookups that the system has not finished; each name occupies at most one thread.
  private let lookUps = Monitor<[Endpoint]>([])

  /// Creates a resolver for these endpoints, which serve all channels.
  package init(endpoints: [Endpoint]) {
    entries = endpoints.map { Entry(endpoint: $0, channels: nil) }
  }

  /// Adds endpoints that serve one channel, or all of them, up to `limit` in all; texts that do not
  /// parse are ignored.
  package mutating func add(_ hints: [String], for channel: ChannelID?, limit: Int) {
    for hint in hints {
      guard let new = try? Endpoint(hint, option: "the invite") else { continue }
      guard let index = entries.firstIndex(where: { $0.endpoint == new }) else {
        if entries.count < limit {
          entries.append(Entry(endpoint: new, channels: channel.map { [$0] }))
        }
        continue
      }
      guard let channel, !entries[index].serves(channel) else { continue }
      entries[index].channels?.append(channel)
    }
  }

  /// Removes a channel from the endpoints that serve it, and those that serve no other.
  package mutating func remove(_ channel: ChannelID) {
    for index in entries.indices { entries[index].channels?.removeAll { $0 == channel } }
    entries.removeAll { $0.channels?.isEmpty == true }
  }

  /// The maximum number of addresses used per name.
  private static let addressesPerName = 4

  /// The current addresses of every endpoint; an empty list if a name does not resolve within
  /// `limit` or an earlier lookup of the name is unfinished. Names are resolved concurrently, each
  /// on its own thread, so that one unresponsive name server delays no other name.
  package func resolve(within limit: Duration) async -> [(entry: Entry, addresses: [Address])] {
    await withTaskGroup(of: (Int, [Address]).self) { group in
      for (index, entry) in entries.enumerated() {
        group.addTask { (index, await addresses(of: entry.endpoint, within: limit)) }
      }
      var found = entries.map { (entry: $0, addresses: [Address]()) }
      for await (index, addresses) in group { found[index].addresses = addresses }
      return found
    }
  }

  private func addresses(of endpoint: Endpoint, within limit: Duration) async -> [Address] {
    if let address = Address(endpoint.text) { return [address] }
    let isFirst = lookUps.withLock { lookUps in
      guard !lookUps.contains(endpoint) else { return false }
      lookUps.append(endpoint)
      return true
    }
    guard isFirst else { return [] }
    let lookUps = lookUps
    let found = await WorkerThread.result("muster-lookup", within: limit) {
      defer { lookUps.withLock { $0.removeAll { $0 == endpoint } } }
      return Self.lookUp(endpoint)
    }
    return found ?? []
  }

  /// The addresses of a name, at most `addressesPerName`, in the system's order of preference (RFC
  /// 6724). Blocks until the system answers.
  private static func lookUp(_ endpoint: Endpoint) -> [Address] {
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
