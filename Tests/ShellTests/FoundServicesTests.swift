import Muster
import MusterBase
import Testing

private func way(
  _ name: String, interface: Int32 = 2, family: Int32 = 0
) -> FoundServices.Way {
  FoundServices.Way(
    name: Array(name.utf8CString), domain: Array("local".utf8CString), interface: interface,
    family: family)
}

private func address(_ last: UInt32) -> Address { Address(host: .v4(0x0A4D_0000 | last), port: 7) }

/// Stands for one of Avahi's, which nothing here follows.
private func resolver(_ number: Int) -> OpaquePointer {
  OpaquePointer(bitPattern: number + 1)!
}

@Test func servicesAreTakenInUpToTheLimit() {
  var found = FoundServices()
  for number in 0..<1000 {
    #expect(found.add(way("\u{1B}[31m\(number)")) == (number < Limits.services))
  }
  #expect(found.entries.count == Limits.services)
  #expect(found.hasLeftOut && !found.hasRoom)
}

@Test func oneServiceHasFewWays() {
  var found = FoundServices()
  for interface in 0..<100 {
    let isNew = found.add(way("a", interface: Int32(interface)))
    #expect(isNew == (interface < FoundServices.waysPerService))
  }
  #expect(found.hasRoom)
}

@Test func knownServicesGetNewWaysWhereOthersGetNone() {
  var found = FoundServices()
  for number in 0..<Limits.services { _ = found.add(way("\(number)")) }
  #expect(found.add(way("new")) == false)
  #expect(found.add(way("0", family: 1)) == true)
  #expect(found.add(way("0", family: 1)) == false, "it is known")
}

@Test func aServiceThatGoesMakesRoom() {
  var found = FoundServices()
  for number in 0..<Limits.services { _ = found.add(way("\(number)")) }
  found.setResolver(resolver(3), of: way("3"))
  let gone = found.remove(way("3"))
  #expect(gone?.resolver == resolver(3))
  #expect(found.remove(way("3"))?.way == nil)
  #expect(found.hasRoom)
  #expect(found.add(way("new")) == true)
}

@Test func addressesAreToldOnceAndGoWithTheirService() {
  var found = FoundServices()
  let ways = [way("a"), way("a", interface: 3), way("b")]
  for (number, way) in ways.enumerated() {
    #expect(found.add(way) == true)
    found.setResolver(resolver(number), of: way)
    found.setAddress(address(number < 2 ? 1 : 2), by: resolver(number))
  }
  #expect(found.addresses == [address(1), address(2)])
  #expect(found.remove(ways[0])?.address == address(1))
  #expect(found.addresses == [address(1), address(2)], "it is still there by another way")
  #expect(found.remove(ways[1])?.address == address(1))
  #expect(found.addresses == [address(2)])
}

@Test func whatAResolverNoLongerFindsIsNoPlace() {
  var found = FoundServices()
  #expect(found.add(way("a")) == true)
  found.setResolver(resolver(0), of: way("a"))
  found.setAddress(address(1), by: resolver(1))
  #expect(found.addresses.isEmpty, "this resolver is nobody's")
  found.setAddress(address(1), by: resolver(0))
  found.setAddress(nil, by: resolver(0))
  #expect(found.addresses.isEmpty)
}
