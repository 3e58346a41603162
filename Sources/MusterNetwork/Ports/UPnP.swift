import CMiniUPnPc
import MusterBase
import MusterSystem

/// A client for UPnP Internet Gateway Devices 1 and 2. All functions block.
///
/// Any host on the network can answer the search with a URL. Only URLs at the gateway's own address
/// are fetched: the gateway sees all traffic anyway, so it gains nothing by lying.
package enum UPnP {
  /// A gateway's connection service, WANIPConnection or WANPPPConnection.
  package struct Service: Equatable, Sendable {
    /// The control URL.
    package var url: String
    /// The service type, such as `urn:schemas-upnp-org:service:WANIPConnection:1`.
    package var type: String
    /// This machine's source address towards the gateway.
    package var inside: String
  }

  /// The result of a mapping request.
  private enum Outcome {
    case mapped(lease: UInt32), taken, refused
  }

  // Error codes of the action AddPortMapping (UPnP WANIPConnection section 2.4.16.4).
  private static let conflict: Int32 = 718
  private static let permanentLeasesOnly: Int32 = 725
  /// The number of other external ports to try if the requested one is taken.
  private static let otherPorts = 3

  // MARK: Mapping

  /// Maps external port `requested`, or another port if `requested` is taken, to this host's UDP
  /// port `port` for `lease` seconds; nil if refused.
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

  /// Deletes the mapping of an external port.
  package static func unmap(_ outer: UInt16, at service: Service) {
    UPNP_DeletePortMapping(service.url, service.type, "\(outer)", "UDP", nil)
  }

  private static func ask(
    _ service: Service, outer: UInt16, inner: UInt16, lease: UInt32, _ question: PortQuestion
  ) -> Outcome {
    // No mapping is requested after the deadline, because a mapping granted too late would have to
    // be deleted.
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

  /// The gateway's external address; nil if the gateway has none.
  private static func outside(of service: Service) -> Address.Host? {
    // The length of an IPv4 address in text with its terminating zero, which is the library's
    // limit.
    var text = [CChar](repeating: 0, count: 16)
    guard UPNP_GetExternalIPAddress(service.url, service.type, &text) == UPNPCOMMAND_SUCCESS,
      let address = Address(string(text) + ":0"), address.host != .v4(0)
    else { return nil }
    return address.host
  }

  // MARK: Discovery

  private static let searched = [
    "urn:schemas-upnp-org:device:InternetGatewayDevice:1",
    "urn:schemas-upnp-org:service:WANIPConnection:1",
    "urn:schemas-upnp-org:service:WANPPPConnection:1",
  ]
  /// The duration of a search in ms. UPnP devices answer after a random delay of up to MX seconds,
  /// a whole number, so 1 s is the minimum.
  private static let searchMilliseconds: Int32 = 1000
  /// The maximum number of device descriptions fetched: a gateway has one, but a malicious host may
  /// announce any number.
  private static let descriptions = 2

  /// The first connection service of the gateway on this route that has an external address; nil if
  /// there is none.
  package static func find(_ route: DefaultRoute, _ question: PortQuestion) -> Service? {
    guard !question.isOver else { return nil }
    for url in search(route).prefix(descriptions) where !question.isOver {
      for service in services(at: url, of: route.gateway) where outside(of: service) != nil {
        return service
      }
    }
    return nil
  }

  /// The URLs of the gateway's descriptions, without duplicates.
  private static func search(_ route: DefaultRoute) -> [String] {
    let types = searched.map { strdup($0) }
    defer { for type in types { free(type) } }
    var list = types.map { UnsafePointer($0) } + [nil]
    // One search for all types, because separate searches would take a second each.
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

  /// The gateway's connection services: IP, PPP, or both, only one of which is in use.
  private static func services(at url: String, of gateway: Address) -> [Service] {
    var urls = UPNPUrls()
    var data = IGDdatas()
    // The length of an IPv6 address in text.
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

  /// Whether a URL is at the gateway's numeric address; a name could resolve to anything.
  package static func isAt(_ gateway: Address, _ url: String) -> Bool {
    let start = "http://\(gateway.hostText)"
    guard url.hasPrefix(start), let next = url.dropFirst(start.count).first else { return false }
    return next == ":" || next == "/"
  }

  private static func string(_ text: some Sequence<CChar>) -> String {
    String(decoding: text.prefix { $0 != 0 }.map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
  }
}
