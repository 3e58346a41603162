import MusterBase
import MusterSimulator
import Testing

private let port: UInt16 = 4000

private func at(_ seconds: Int) -> Instant { .zero + .seconds(seconds) }

/// Delivers all datagrams in flight.
private func drain(_ internet: inout Internet) -> [Internet.Delivery] {
  var all: [Internet.Delivery] = []
  while let deadline = internet.deadline { all += internet.tick(at: deadline) }
  return all
}

/// An internet of homes with one host each.
private func internet(_ kinds: NATKind...) -> Internet {
  var internet = Internet(homes: kinds, seed: 1)
  for home in kinds.indices { _ = internet.addHost(port: port, in: home) }
  return internet
}

struct InternetTests {
  @Test func publicHostsHearEachOtherAsTheyAre() {
    var internet = internet(.none, .none)
    internet.send([1], from: 0, to: internet.address(of: 1), at: .zero)
    let all = drain(&internet)
    #expect(all.map(\.host) == [1])
    #expect(all.first?.from == internet.address(of: 0))
  }

  @Test func homesHaveTheSamePrivateAddressesAndDifferentOnesOutside() throws {
    var internet = internet(.full, .full, .none)
    #expect(internet.address(of: 0) == internet.address(of: 1))
    for host in 0..<2 { internet.send([1], from: host, to: internet.address(of: 2), at: .zero) }
    let all = drain(&internet)
    #expect(all.map(\.host) == [2, 2])
    #expect(all[0].from.host != all[1].from.host)
    // Each reply reaches the right one of the two hosts.
    internet.send([2], from: 2, to: all[0].from, at: at(1))
    internet.send([2], from: 2, to: all[1].from, at: at(1))
    #expect(drain(&internet).map(\.host).sorted() == [0, 1])
  }

  @Test func aPrivateAddressMeansSomebodyOfTheOwnHome() {
    var internet = internet(.full, .full)
    let here = internet.addHost(port: port, in: 0)
    let there = internet.addHost(port: port, in: 1)
    #expect(internet.address(of: here) == internet.address(of: there))
    internet.send([1], from: 0, to: internet.address(of: there), at: .zero)
    let all = drain(&internet)
    #expect(all.map(\.host) == [here])
    #expect(all.first?.from == internet.address(of: 0))
  }

  @Test func aBroadcastStaysAtHome() {
    var internet = internet(.full, .full, .none)
    let here = internet.addHost(port: port, in: 0)
    internet.broadcast([1], from: 0, at: .zero)
    #expect(drain(&internet).map(\.host) == [here])
  }

  @Test func nothingHairpins() {
    var internet = internet(.full, .none)
    let here = internet.addHost(port: port, in: 0)
    internet.send([1], from: here, to: internet.address(of: 1), at: .zero)
    let seen = drain(&internet)[0].from
    internet.send([2], from: 0, to: seen, at: at(1))
    #expect(drain(&internet).isEmpty)
    #expect(internet.counters.filtered == 1)
  }

  @Test func aCutStopsBothWaysAndNoOthers() {
    var internet = internet(.none, .none, .none)
    internet.setCut(true, between: 0, and: 1)
    for (from, to) in [(0, 1), (1, 0), (0, 2), (2, 1)] {
      internet.send([1], from: from, to: internet.address(of: to), at: .zero)
    }
    #expect(drain(&internet).map(\.host) == [2, 1])
    #expect(internet.counters.cut == 2)
    internet.setCut(false, between: 1, and: 0)
    internet.send([1], from: 0, to: internet.address(of: 1), at: .zero)
    #expect(drain(&internet).map(\.host) == [1])
  }

  @Test func aMovedHostIsNotReachedAtItsOldAddress() {
    var internet = internet(.none, .none, .none)
    let before = internet.address(of: 1)
    internet.send([1], from: 0, to: before, at: .zero)
    internet.move(1, to: 2)
    #expect(internet.address(of: 1) != before)
    #expect(drain(&internet).isEmpty)
    internet.send([1], from: 0, to: internet.address(of: 1), at: .zero)
    #expect(drain(&internet).map(\.host) == [1])
  }

  @Test func hostsOfOneHomeHaveDifferentAddresses() {
    var internet = internet(.full, .full)
    let other = internet.addHost(port: port, in: 0)
    #expect(internet.address(of: 0) != internet.address(of: other))
    internet.move(1, to: 0)
    let addresses = [0, 1, other].map { internet.address(of: $0) }
    #expect(addresses.allSatisfy { one in addresses.count { $0 == one } == 1 })
    // An address that has become free is assigned again.
    let left = internet.address(of: other)
    internet.move(other, to: 1)
    let next = internet.addHost(port: port, in: 0)
    #expect(internet.address(of: next) == left)
  }

  @Test func twoPreservingRoutersPassAfterMutualProbes() {
    var internet = internet(.preserving, .preserving, .none)
    for host in 0..<2 { internet.send([0], from: host, to: internet.address(of: 2), at: .zero) }
    let seen = drain(&internet).map(\.from)
    internet.send([1], from: 0, to: seen[1], at: at(1))
    #expect(drain(&internet).isEmpty)
    internet.send([2], from: 1, to: seen[0], at: at(2))
    #expect(drain(&internet).map(\.host) == [0])
    internet.send([3], from: 0, to: seen[1], at: at(3))
    #expect(drain(&internet).map(\.host) == [1])
  }

  @Test func aRandomPortDiffersPerDestination() {
    var internet = internet(.preserving, .random, .none)
    for host in 0..<2 { internet.send([0], from: host, to: internet.address(of: 2), at: .zero) }
    let seen = drain(&internet).map(\.from)
    for _ in 0..<3 {
      internet.send([1], from: 0, to: seen[1], at: at(1))
      internet.send([2], from: 1, to: seen[0], at: at(1))
    }
    #expect(drain(&internet).isEmpty)
  }
}
