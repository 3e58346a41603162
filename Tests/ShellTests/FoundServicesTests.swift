import Muster
import MusterBase
import MusterNetwork
import Testing

private func instance(
  _ name: String, interface: Int32 = 2, family: Int32 = 0
) -> FoundServices.Instance {
  FoundServices.Instance(
    name: Array(name.utf8CString), domain: Array("local".utf8CString), interface: interface,
    family: family)
}

private func address(_ last: UInt32) -> Address { Address(host: .v4(0x0A4D_0000 | last), port: 7) }

/// A placeholder for an Avahi resolver; the code under test does not dereference it.
private func resolver(_ number: Int) -> OpaquePointer {
  OpaquePointer(bitPattern: number + 1)!
}

@Test func servicesAreTakenInUpToTheLimit() {
  var found = FoundServices()
  for number in 0..<1000 {
    #expect(found.add(instance("\u{1B}[31m\(number)")) == (number < Limits.services))
  }
  #expect(found.entries.count == Limits.services)
  #expect(found.hasLeftOut && !found.hasRoom)
}

@Test func oneServiceHasFewInstances() {
  var found = FoundServices()
  for interface in 0..<100 {
    let isNew = found.add(instance("a", interface: Int32(interface)))
    #expect(isNew == (interface < FoundServices.instancesPerService))
  }
  #expect(found.hasRoom)
}

@Test func aFullTableTakesNewInstancesOfKnownServicesOnly() {
  var found = FoundServices()
  for number in 0..<Limits.services { _ = found.add(instance("\(number)")) }
  #expect(found.add(instance("new")) == false)
  #expect(found.add(instance("0", family: 1)) == true)
  #expect(found.add(instance("0", family: 1)) == false, "it is known")
}

@Test func aServiceThatGoesMakesRoom() {
  var found = FoundServices()
  for number in 0..<Limits.services { _ = found.add(instance("\(number)")) }
  found.setResolver(resolver(3), of: instance("3"))
  let gone = found.remove(instance("3"))
  #expect(gone?.resolver == resolver(3))
  #expect(found.remove(instance("3"))?.instance == nil)
  #expect(found.hasRoom)
  #expect(found.add(instance("new")) == true)
}

@Test func addressesAreReportedOnceAndGoWithTheirService() {
  var found = FoundServices()
  let instances = [instance("a"), instance("a", interface: 3), instance("b")]
  for (number, instance) in instances.enumerated() {
    #expect(found.add(instance) == true)
    found.setResolver(resolver(number), of: instance)
    found.setAddress(address(number < 2 ? 1 : 2), by: resolver(number))
  }
  #expect(found.addresses == [address(1), address(2)])
  #expect(found.remove(instances[0])?.address == address(1))
  #expect(found.addresses == [address(1), address(2)], "it is still there by another way")
  #expect(found.remove(instances[1])?.address == address(1))
  #expect(found.addresses == [address(2)])
}

@Test func anAddressThatAResolverNoLongerFindsIsRemoved() {
  var found = FoundServices()
  #expect(found.add(instance("a")) == true)
  found.setResolver(resolver(0), of: instance("a"))
  found.setAddress(address(1), by: resolver(1))
  #expect(found.addresses.isEmpty, "this resolver is nobody's")
  found.setAddress(address(1), by: resolver(0))
  found.setAddress(nil, by: resolver(0))
  #expect(found.addresses.isEmpty)
}
