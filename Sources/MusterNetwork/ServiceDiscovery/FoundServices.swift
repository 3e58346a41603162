import MusterBase

/// The services that Avahi found, and their addresses. The number of services is bounded, because
/// the network may be hostile.
package struct FoundServices {
  /// A service as found on one interface and address family. The names are untrusted bytes with a
  /// terminating zero: they are compared and passed back to Avahi, never displayed.
  package struct Instance: Equatable {
    /// The service's instance name.
    package var name: [CChar]
    /// The DNS-SD domain, such as `local`.
    package var domain: [CChar]
    /// The kernel's interface index.
    package var interface: Int32
    /// The address family: `AVAHI_PROTO_INET` or `AVAHI_PROTO_INET6`.
    package var family: Int32

    package init(name: [CChar], domain: [CChar], interface: Int32, family: Int32) {
      self.name = name
      self.domain = domain
      self.interface = interface
      self.family = family
    }
  }

  /// A service and the state of its resolution.
  package struct Entry {
    /// The service.
    package let instance: Instance
    /// Avahi's resolver; nil before resolution starts and after it has failed.
    package var resolver: OpaquePointer?
    /// The resolved address; nil before the resolver's first result.
    package var address: Address?
  }

  /// The maximum number of instances per service: two interfaces with IPv4 and IPv6 each.
  package static let instancesPerService = 4

  /// The services found, in the order of discovery.
  package private(set) var entries: [Entry] = []
  /// Whether services were ignored for lack of space.
  package private(set) var hasLeftOut = false

  /// Creates an empty list.
  package init() {}

  /// Adds a service; false if the service is already listed or there is no space.
  package mutating func add(_ instance: Instance) -> Bool {
    guard !entries.contains(where: { $0.instance == instance }) else { return false }
    let known = entries.filter { $0.instance.name == instance.name }.count
    guard known < Self.instancesPerService, known > 0 || hasRoom else {
      hasLeftOut = true
      return false
    }
    entries.append(Entry(instance: instance))
    return true
  }

  /// Removes a service and returns its state.
  package mutating func remove(_ instance: Instance) -> Entry? {
    guard let index = entries.firstIndex(where: { $0.instance == instance }) else { return nil }
    return entries.remove(at: index)
  }

  /// Sets the resolver of a service.
  package mutating func setResolver(_ resolver: OpaquePointer?, of instance: Instance) {
    guard let index = entries.firstIndex(where: { $0.instance == instance }) else { return }
    entries[index].resolver = resolver
  }

  /// Records a resolver's result; nil if the service no longer resolves.
  package mutating func setAddress(_ address: Address?, by resolver: OpaquePointer) {
    guard let index = entries.firstIndex(where: { $0.resolver == resolver }) else { return }
    entries[index].address = address
  }

  /// Whether there is space for another service.
  package var hasRoom: Bool {
    var names: [[CChar]] = []
    for entry in entries where !names.contains(entry.instance.name) {
      names.append(entry.instance.name)
    }
    return names.count < Limits.services
  }

  /// The addresses of the services, without duplicates, in the order in which they were found.
  package var addresses: [Address] {
    var all: [Address] = []
    for case let address? in entries.map(\.address) where !all.contains(address) {
      all.append(address)
    }
    return all
  }
}
