import CMiniUPnPc
import Glibc
import MusterBase
import MusterDevices

/// Asks a gateway by UPnP (Internet Gateway Device 1 and 2). Every function blocks.
///
/// Anyone on the network may answer the search, and the library reads what it is led to. So only
/// addresses at the gateway itself are followed: whoever is there has all packets anyway.
package enum UPnP {
  /// Where a gateway takes orders.
  package struct Service: Equatable, Sendable {
    package var url: String
    package var type: String
    /// This machine, as the gateway sees it.
    package var inside: String
  }

  /// What happens when a port is asked for.
  private enum Outcome {
    case mapped(lease: UInt32), taken, refused
  }

  // UPnP WANIPConnection 2.4.16.4, "Error Codes".
  private static let conflict: Int32 = 718
  private static let permanentLeasesOnly: Int32 = 725
  /// Another's mapping has the port: some others are tried.
  private static let otherPorts = 3

  // MARK: Mapping

  /// A mapping for this host's UDP port `port`, at port `requested` outside if that is free, else at
  /// some other.
  package static func map(
    _ port: UInt16, to requested: UInt16, at service: Service, lease: UInt32,
    _ question: PortQuestion
  ) -> PortMapping? {
    guard let host = outside(of: service) else { return nil }
    var outer = requested
    for _ in 0...otherPorts {
      switch ask(service, outer: outer, inner: port, lease: lease, question) {
      case .mapped(let granted):
        return PortMapping(
          method: .upnp, outside: Address(host: host, port: outer),
          lifetime: .seconds(Int64(granted)))
      case .taken: outer = .random(in: 49_152...65_535)
      case .refused: return nil
      }
    }
    return nil
  }

  package static func unmap(_ outer: UInt16, at service: Service) {
    UPNP_DeletePortMapping(service.url, service.type, "\(outer)", "UDP", nil)
  }

  private static func ask(
    _ service: Service, outer: UInt16, inner: UInt16, lease: UInt32, _ question: PortQuestion
  ) -> Outcome {
    // A mapping that comes too late would have to be taken back.
    guard !question.isOver else { return .refused }
    let code = UPNP_AddPortMapping(
      service.url, service.type, "\(outer)", "\(inner)", service.inside, "muster", "UDP", nil,
      "\(lease)")
    switch code {
    case UPNPCOMMAND_SUCCESS: return .mapped(lease: lease)
    case permanentLeasesOnly where lease != 0:
      return ask(service, outer: outer, inner: inner, lease: 0, question)
    case conflict: return .taken
    default: return .refused
    }
  }

  /// The gateway's own address outside; nil for "none yet" and for what is no address.
  private static func outside(of service: Service) -> Address.Host? {
    // As long as an IPv4 address in text, with its zero: the library writes no more than this.
    var text = [CChar](repeating: 0, count: 16)
    guard UPNP_GetExternalIPAddress(service.url, service.type, &text) == UPNPCOMMAND_SUCCESS,
      let address = Address(string(text) + ":0"), address.host != .v4(0)
    else { return nil }
    return address.host
  }

  // MARK: Finding

  private static let searched = [
    "urn:schemas-upnp-org:device:InternetGatewayDevice:1",
    "urn:schemas-upnp-org:service:WANIPConnection:1",
    "urn:schemas-upnp-org:service:WANPPPConnection:1",
  ]
  /// The library waits no less, in ms; UPnP has devices answer within whole seconds.
  private static let searchMilliseconds: Int32 = 1000
  /// Descriptions that are fetched: a gateway has one, a liar may tell of any number.
  private static let descriptions = 2

  /// The service of the gateway on this way that knows its address outside.
  package static func find(_ route: DefaultRoute, _ question: PortQuestion) -> Service? {
    guard !question.isOver else { return nil }
    for url in search(route).prefix(descriptions) where !question.isOver {
      for service in services(at: url, of: route.gateway) where outside(of: service) != nil {
        return service
      }
    }
    return nil
  }

  /// Where the gateway's descriptions are, each once.
  private static func search(_ route: DefaultRoute) -> [String] {
    let types = searched.map { strdup($0) }
    defer { for type in types { free(type) } }
    var list = types.map { UnsafePointer($0) } + [nil]
    // All three at once: one after the other, the silent ones would take a second each.
    guard
      let found = upnpDiscoverDevices(
        &list, searchMilliseconds, route.interface, "", UPNP_LOCAL_PORT_ANY, 0, 2, nil, 1)
    else { return [] }
    defer { freeUPNPDevlist(found) }
    var urls: [String] = []
    var next: UnsafeMutablePointer<UPNPDev>? = found
    while let device = next, urls.count < descriptions {
      if let text = device.pointee.descURL {
        let url = String(cString: text)
        if isAt(route.gateway, url), !urls.contains(url) { urls.append(url) }
      }
      next = device.pointee.pNext
    }
    return urls
  }

  /// A gateway has a service for an ordinary line, one for PPP, or both of which one is in use.
  private static func services(at url: String, of gateway: Address) -> [Service] {
    var urls = UPNPUrls()
    var data = IGDdatas()
    // As long as an IPv6 address in text.
    var inside = [CChar](repeating: 0, count: 46)
    guard UPNP_GetIGDFromUrl(url, &urls, &data, &inside, Int32(inside.count)) == 1 else {
      return []
    }
    defer { FreeUPNPUrls(&urls) }
    var services: [Service] = []
    for part in [data.first, data.second] {
      data.first = part
      FreeUPNPUrls(&urls)
      GetUPNPUrls(&urls, &data, url, 0)
      let type = withUnsafeBytes(of: part.servicetype) { string($0.bindMemory(to: CChar.self)) }
      guard !type.isEmpty, let control = urls.controlURL else { continue }
      let service = Service(url: String(cString: control), type: type, inside: string(inside))
      if isAt(gateway, service.url) { services.append(service) }
    }
    return services
  }

  /// Whether a URL leads to the gateway and nowhere else, by number: a name could mean anything.
  package static func isAt(_ gateway: Address, _ url: String) -> Bool {
    let start = "http://\(gateway.hostText)"
    guard url.hasPrefix(start), let next = url.dropFirst(start.count).first else { return false }
    return next == ":" || next == "/"
  }

  private static func string(_ text: some Sequence<CChar>) -> String {
    String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
