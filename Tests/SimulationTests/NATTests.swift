import MusterBase
import MusterSimulator
import Testing

private let outside = Address.Host.v4(0xC612_0001)
private let anna = Address(host: .v4(0xC0A8_0102), port: 4000)
private let bert = Address(host: .v4(0xC0A8_0103), port: 4000)
private let first = Address(host: .v4(0xC612_0102), port: 47_475)
private let second = Address(host: .v4(0xC612_0202), port: 4000)
/// Another port of the host of `second`.
private let third = Address(host: .v4(0xC612_0202), port: 4001)

private let routers: [NATKind] = [.full, .preserving, .random]

private func nat(_ kind: NATKind) -> NAT { NAT(kind, outside: outside, seed: 1) }

private func at(_ seconds: Int) -> Instant { .zero + .seconds(seconds) }

private func leave(
  _ nat: inout NAT, from inside: Address, to remote: Address, at now: Instant
) throws -> Address {
  let seen = nat.leave(from: inside, to: remote, at: now)
  return try #require(seen)
}

/// Routers of each kind, against the definitions of RFC 4787.
struct NATTests {
  @Test(arguments: routers)
  func outgoingDatagramsHaveTheOutsideAddress(kind: NATKind) throws {
    var nat = nat(kind)
    let seen = try leave(&nat, from: anna, to: first, at: .zero)
    #expect(seen.host == outside)
    #expect((seen.port == anna.port) == (kind == .preserving))
    #expect(nat.leave(from: anna, to: first, at: at(1)) == seen)
  }

  @Test(arguments: routers)
  func onlyARandomOneHasAPortForEachDestination(kind: NATKind) {
    var nat = nat(kind)
    let ports = [first, second, third].map { nat.leave(from: anna, to: $0, at: .zero)?.port }
    #expect(ports[0] != nil)
    #expect((ports[0] == ports[1]) == (kind != .random))
    #expect((ports[1] == ports[2]) == (kind != .random))
  }

  @Test(arguments: routers)
  func answersComeIn(kind: NATKind) throws {
    var nat = nat(kind)
    let seen = try leave(&nat, from: anna, to: second, at: .zero)
    #expect(nat.enter(from: second, to: seen, at: at(1)) == anna)
  }

  @Test(arguments: routers)
  func onlyFullConeLetsUnknownHostsIn(kind: NATKind) throws {
    var nat = nat(kind)
    let seen = try leave(&nat, from: anna, to: second, at: .zero)
    for remote in [first, third] {
      #expect((nat.enter(from: remote, to: seen, at: at(1)) == anna) == (kind == .full))
    }
  }

  @Test(arguments: routers)
  func nobodyIsAtAPortThatNobodyUses(kind: NATKind) throws {
    var nat = nat(kind)
    #expect(nat.enter(from: first, to: Address(host: outside, port: 9), at: .zero) == nil)
    let seen = try leave(&nat, from: anna, to: first, at: .zero)
    // Another home has the same port.
    let elsewhere = Address(host: .v4(0xC612_0301), port: seen.port)
    #expect(nat.enter(from: first, to: elsewhere, at: .zero) == nil)
  }

  @Test(arguments: routers)
  func twoBehindOneRouterHavePortsOfTheirOwn(kind: NATKind) throws {
    var nat = nat(kind)
    let one = try leave(&nat, from: anna, to: first, at: .zero)
    let other = try leave(&nat, from: bert, to: first, at: .zero)
    #expect(one.host == other.host && one.port != other.port)
    #expect(nat.enter(from: first, to: one, at: at(1)) == anna)
    #expect(nat.enter(from: first, to: other, at: at(1)) == bert)
    // The later mapping, whose own port was taken, keeps its allocated port for all destinations.
    if kind == .preserving {
      #expect(one.port == anna.port)
      #expect(nat.leave(from: bert, to: second, at: at(1)) == other)
    }
  }

  @Test(arguments: routers)
  func anUnansweredMappingExpiresSoon(kind: NATKind) throws {
    var nat = nat(kind)
    let seen = try leave(&nat, from: anna, to: first, at: .zero)
    #expect(nat.enter(from: first, to: seen, at: at(30)) == nil)
    #expect(nat.mappingCount(at: at(30)) == 0)
    let next = try leave(&nat, from: anna, to: first, at: at(30))
    #expect((next.port == seen.port) == (kind == .preserving))
  }

  @Test(arguments: routers)
  func anAnsweredMappingLastsFourTimesAsLong(kind: NATKind) throws {
    var nat = nat(kind)
    let seen = try leave(&nat, from: anna, to: first, at: .zero)
    #expect(nat.enter(from: first, to: seen, at: at(1)) == anna)
    #expect(nat.enter(from: first, to: seen, at: at(120)) == anna)
    #expect(nat.leave(from: anna, to: first, at: at(239)) == seen)
    #expect(nat.enter(from: first, to: seen, at: at(359)) == nil)
  }

  @Test(arguments: routers)
  func aRebindingForgetsAll(kind: NATKind) throws {
    var nat = nat(kind)
    let seen = try leave(&nat, from: anna, to: first, at: .zero)
    nat.rebind()
    #expect(nat.enter(from: first, to: seen, at: at(1)) == nil)
    let next = try leave(&nat, from: anna, to: first, at: at(1))
    #expect((next == seen) == (kind == .preserving))
  }

  @Test(arguments: routers)
  func aNewAddressOutsideMakesTheFormerOneNobodys(kind: NATKind) throws {
    var nat = nat(kind)
    let seen = try leave(&nat, from: anna, to: first, at: .zero)
    nat.renumber(.v4(0xC612_0003))
    #expect(nat.enter(from: first, to: seen, at: .zero) == nil)
    #expect(nat.leave(from: anna, to: first, at: .zero)?.host == .v4(0xC612_0003))
  }

  @Test func nothingPassesWhereUDPIsBlocked() {
    var nat = nat(.blocked)
    #expect(nat.leave(from: anna, to: first, at: .zero) == nil)
    #expect(nat.enter(from: first, to: Address(host: outside, port: 4000), at: .zero) == nil)
  }

  @Test func withoutARouterNothingIsTranslated() {
    var nat = nat(.none)
    #expect(nat.leave(from: second, to: first, at: .zero) == second)
    #expect(nat.enter(from: first, to: second, at: .zero) == second)
  }
}
