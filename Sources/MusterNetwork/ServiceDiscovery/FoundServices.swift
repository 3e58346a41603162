import MusterBase

/// The services of others that Avahi names, and the address of each: bounded, whatever is named.
package struct FoundServices {
  /// A service by one of the ways that lead to it. The names are strangers' bytes, zero at the end:
  /// compared and handed back to Avahi, never shown.
  package struct Instance: Equatable {
    package var name: [CChar]
    package var domain: [CChar]
    package var interface: Int32
    package var family: Int32

    package init(name: [CChar], domain: [CChar], interface: Int32, family: Int32) {
      self.name = name
      self.domain = domain
      self.interface = interface
      self.family = family
    }
  }

  package struct Entry {
    package let instance: Instance
    /// Nil before it is asked where the service is, and after that failed.
    package var resolver: OpaquePointer?
    package var address: Address?
  }

  /// Two interfaces, with IPv4 and IPv6 each.
  package static let instancesPerService = 4

  package private(set) var entries: [Entry] = []
  /// There were more than there is room for.
  package private(set) var hasLeftOut = false

  package init() {}

  /// Takes in a way that was not known; false if it was, or if there is no room.
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

  /// Gives back what was known of a way.
  package mutating func remove(_ instance: Instance) -> Entry? {
    guard let index = entries.firstIndex(where: { $0.instance == instance }) else { return nil }
    return entries.remove(at: index)
  }

  package mutating func setResolver(_ resolver: OpaquePointer?, of instance: Instance) {
    guard let index = entries.firstIndex(where: { $0.instance == instance }) else { return }
    entries[index].resolver = resolver
  }

  /// Notes what a resolver found out; nil if it found nothing any more.
  package mutating func setAddress(_ address: Address?, by resolver: OpaquePointer) {
    guard let index = entries.firstIndex(where: { $0.resolver == resolver }) else { return }
    entries[index].address = address
  }

  /// Whether another service would be taken in.
  package var hasRoom: Bool {
    var names: [[CChar]] = []
    for entry in entries where !names.contains(entry.instance.name) {
      names.append(entry.instance.name)
    }
    return names.count < Limits.services
  }

  /// Where the services are, each address once, in the order in which they were named.
  package var addresses: [Address] {
    var all: [Address] = []
    for case let address? in entries.map(\.address) where !all.contains(address) {
      all.append(address)
    }
    return all
  }
}
