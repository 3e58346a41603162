import CAvahi
import MusterBase
import MusterSystem

/// Methods for browsing for services and resolving their addresses.
extension AvahiSession {
  /// Starts browsing, and retries services that did not resolve; returns the daemon's error, if
  /// any.
  package func browse() -> MusterError? {
    guard let client else { return nil }
    let isOverdue = BootClock.now - browsedAt >= Self.browseAgain
    if hasLostBrowser || (found.hasLeftOut && found.hasRoom && isOverdue) { stopBrowsing() }
    if browsers.isEmpty {
      browsedAt = BootClock.now
      for interface in usedInterfaces {
        let browser = avahi_service_browser_new(
          client, interface, Int32(AVAHI_PROTO_UNSPEC), Self.serviceType, nil, AvahiLookupFlags(0),
          { _, interface, family, event, name, _, domain, _, me in
            AvahiSession.of(me).browsed(event, name, domain, interface, family)
          }, context)
        guard let browser else {
          let code = avahi_client_errno(client)
          stopBrowsing()
          return MusterError(
            "Avahi does not look for others (\(Self.text(of: code)))",
            hint: "see what avahi-daemon.conf says on interfaces")
        }
        browsers.append(browser)
      }
    }
    for entry in found.entries where entry.resolver == nil { resolve(entry.instance) }
    return nil
  }

  /// The minimum interval between restarts of browsing, which find the services that were ignored
  /// for lack of space. Without the limit, a host that keeps announcing and withdrawing services
  /// could prevent other services from being found.
  private static let browseAgain = Duration.seconds(60)

  /// Ends browsing and all resolvers.
  package func stopBrowsing() {
    for browser in browsers { avahi_service_browser_free(browser) }
    for case let resolver? in found.entries.map(\.resolver) {
      avahi_service_resolver_free(resolver)
    }
    browsers = []
    hasLostBrowser = false
    forget()
  }

  /// Drops all services found and reports the empty list.
  package func forget() {
    found = FoundServices()
    report()
  }

  private func browsed(
    _ event: AvahiBrowserEvent, _ name: UnsafePointer<CChar>?, _ domain: UnsafePointer<CChar>?,
    _ interface: Int32, _ family: Int32
  ) {
    if event == AVAHI_BROWSER_FAILURE {
      hasLostBrowser = true
      return
    }
    guard let name = Self.bytes(name), let domain = Self.bytes(domain),
      name != Array(instanceName.utf8CString)
    else { return }
    let instance = FoundServices.Instance(
      name: name, domain: domain, interface: interface, family: family)
    if event == AVAHI_BROWSER_NEW {
      if found.add(instance) { resolve(instance) }
    } else if event == AVAHI_BROWSER_REMOVE, let gone = found.remove(instance) {
      if let resolver = gone.resolver { avahi_service_resolver_free(resolver) }
      report()
    }
  }

  /// Starts a resolver for a service, which also reports later changes of the service's address.
  private func resolve(_ instance: FoundServices.Instance) {
    guard let client else { return }
    let resolver = avahi_service_resolver_new(
      client, instance.interface, instance.family, instance.name, Self.serviceType, instance.domain,
      instance.family,
      AvahiLookupFlags(0),
      { resolver, interface, _, event, _, _, _, _, address, port, _, _, me in
        let isFound = event == AVAHI_RESOLVER_FOUND
        let index =
          isFound ? address.flatMap { AvahiSession.index($0.pointee, port, interface) } : nil
        AvahiSession.of(me).resolved(resolver, index, isOver: !isFound)
      }, context)
    found.setResolver(resolver, of: instance)
  }

  private func resolved(_ resolver: OpaquePointer?, _ index: Address?, isOver: Bool) {
    guard let resolver else { return }
    found.setAddress(index, by: resolver)
    if isOver, let entry = found.entries.first(where: { $0.resolver == resolver }) {
      // The next `browse` retries the service.
      avahi_service_resolver_free(resolver)
      found.setResolver(nil, of: entry.instance)
    }
    report()
  }

  private func report() {
    let addresses = found.addresses
    guard addresses != reported else { return }
    reported = addresses
    onChange(addresses)
  }

  /// The address of a service; nil for loopback addresses and addresses that are not unicast.
  private static func index(
    _ address: AvahiAddress, _ port: UInt16, _ interface: Int32
  ) -> Address? {
    let length = address.proto == Int32(AVAHI_PROTO_INET) ? 4 : 16
    let bytes = withUnsafeBytes(of: address.data) { Array($0.prefix(length)) }
    guard var index = Address(hostBytes: bytes, zone: 0, port: port), index.isUnicast,
      !index.isLoopback
    else { return nil }
    if index.isLinkLocal, case .v6(let high, let low, _) = index.host {
      index.host = .v6(high: high, low: low, zone: UInt32(clamping: interface))
    }
    return index
  }

  private static func bytes(_ text: UnsafePointer<CChar>?) -> [CChar]? {
    guard let text else { return nil }
    var length = 0
    while text[length] != 0 { length += 1 }
    return Array(UnsafeBufferPointer(start: text, count: length + 1))
  }
}
