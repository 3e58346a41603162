import MusterBase
import MusterSimulator
import Testing

/// The rule that a link keeps its path while the network does not change.
struct PathSteadinessTests {
  private static let v4 = PathSteadiness.Route.direct(Address(host: .v4(0x0A00_0002), port: 7000))
  private static let v6 = PathSteadiness.Route.direct(
    Address(host: .v6(high: 0xFD << 56, low: 2, zone: 0), port: 7000))

  /// Returns the indices of the routes that are faults, when they are seen one second apart after
  /// the restless time.
  private func faults(_ routes: [PathSteadiness.Route?]) -> [Int] {
    var steadiness = PathSteadiness(nodes: 2)
    steadiness.changed(at: .zero)
    return routes.indices.filter {
      let now = Instant.zero + PathSteadiness.restlessTime + .seconds($0)
      return steadiness.seen(routes[$0], from: 0, to: 1, at: now) != nil
    }
  }

  @Test func onePathChangeIsAllowed() {
    #expect(faults([Self.v4, Self.v4, Self.v6, Self.v6]) == [])
    #expect(faults([Self.v4, Self.v6, Self.v4]) == [2])
  }

  @Test func aDirectPathIsNotLeftForARelay() {
    #expect(faults([Self.v4, .relayed, .relayed]) == [1])
    #expect(faults([.relayed, Self.v4]) == [])
  }

  @Test func aNewLinkHasAnyPath() {
    #expect(faults([Self.v4, nil, Self.v6, nil, .relayed]) == [])
  }

  @Test func pathsMayChangeAfterTheNetwork() {
    var steadiness = PathSteadiness(nodes: 2)
    var now = Instant.zero
    for route in [Self.v4, .relayed, Self.v6, .relayed] {
      #expect(steadiness.seen(route, from: 1, to: 0, at: now) == nil)
      now = now + .milliseconds(500)
    }
    now = .zero + PathSteadiness.restlessTime
    #expect(steadiness.seen(Self.v4, from: 1, to: 0, at: now) == nil)
    steadiness.changed(at: now)
    now = now + PathSteadiness.restlessTime
    #expect(steadiness.seen(.relayed, from: 1, to: 0, at: now) == nil)
    #expect(steadiness.seen(Self.v6, from: 1, to: 0, at: now + .seconds(1)) == nil)
  }
}
