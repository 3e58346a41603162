import MusterBase
import MusterCrypto
import MusterLink
import MusterWire
import Testing

private func liveness(every gap: Duration, count: Int = 200) -> (PathLiveness, Instant) {
  let world = LinkWorld.linked()
  world.delay = .zero
  let link = world.link(to: 0)
  for _ in 0..<count {
    world.say("beat", from: 0, to: 1)
    // Without an answer, node 0 would challenge the path.
    world.say("beat", from: 1, to: 0)
    world.run(for: gap)
  }
  world.say("last", from: 0, to: 1)
  world.run(for: .zero)
  guard let liveness = world.nodes[1].engine.liveness(of: link) else {
    preconditionFailure("there is a link")
  }
  return (liveness, world.now)
}

/// The times after which a path is late, and suspect.
struct PathLivenessTests {
  @Test(arguments: [
    (20, 120), (50, 150), (66, 198), (200, 600), (900, 1000),
  ])
  func threeUsualGapsMakeAPathLate(gap: Int, late: Int) {
    let (liveness, last) = liveness(every: .milliseconds(Int64(gap)))
    #expect(liveness.lastAt == last)
    let patience = (liveness.lateAt - last).inMilliseconds
    #expect(abs(patience - Double(late)) < 5, "after \(patience) ms")
  }

  @Test func aPathIsLostAfterARoundTripAndAHalf() {
    let (liveness, _) = liveness(every: .milliseconds(20))
    #expect(liveness.lostAt(roundTrip: .zero) - liveness.lateAt == .milliseconds(60))
    #expect(liveness.lostAt(roundTrip: .milliseconds(100)) - liveness.lateAt == .milliseconds(150))
    #expect(liveness.lostAt(roundTrip: .seconds(100)) - liveness.lateAt == .seconds(1))
  }

  @Test func aPathTakenAnewHasItsTime() {
    let world = LinkWorld.linked()
    world.run(for: .seconds(4))
    let before = world.nodes[1].engine.liveness(of: world.link(to: 0))
    #expect(before.map { $0.lateAt < world.now } ?? false)
    world.nodes[0].route = Route.direct(Address(host: .v4(0x0A00_0063), port: 2000))
    world.nodes[0].reachableAt.append(world.nodes[0].route)
    world.say("from elsewhere", from: 0, to: 1)
    world.run(for: .milliseconds(50))
    let after = world.nodes[1].engine.liveness(of: world.link(to: 0))
    #expect(after.map { $0.lateAt > world.now } ?? false)
  }
}

/// A link moves to the better of two paths to a peer.
struct PathComparisonTests {
  private static let near = Route.direct(Address(host: .v4(0xC0A8_0105), port: 1000))
  private static let far = Route.direct(Address(host: .v4(0xC633_6407), port: 1000))

  /// A link over `first` to a peer that can also be reached at `other`.
  private func linked(over first: Route, or other: Route) -> LinkWorld {
    let world = LinkWorld(2)
    world.delay = .zero
    world.nodes[1].route = first
    world.nodes[1].reachableAt = [first, other]
    world.connect(0, to: 1)
    world.run(for: .milliseconds(200))
    return world
  }

  /// Lets node 0 find its peer at `other`, and delivers the responses to its challenges after these
  /// round trips. Returns the routes that it challenged.
  private func findPeer(
    at other: Route, _ roundTrips: [(route: Route, time: Duration)], in world: LinkWorld
  ) -> [Route] {
    let found = world.nodes[0].engine.connect(
      to: world.nodes[1].id, bootID: world.nodes[1].bootID, in: world.link(to: 1).key, over: other,
      now: world.now)
    var challenges: [(to: Route, datagram: [UInt8])] = []
    for case .send(let datagram, let to) in found { challenges.append((to, datagram)) }
    let begun = world.now
    for (route, time) in roundTrips.sorted(by: { $0.time < $1.time }) {
      guard let challenge = challenges.first(where: { $0.to == route }) else { continue }
      let responses = world.nodes[1].engine.receive(
        challenge.datagram, from: world.nodes[0].route, at: begun)
      for case .send(let datagram, _) in responses {
        world.perform(0, world.nodes[0].engine.receive(datagram, from: route, at: begun + time))
      }
    }
    return challenges.map(\.to)
  }

  /// The route of a link over `first`, with a round trip of 20 ms, after a comparison with `other`.
  private func route(after delay: Duration, at other: Route, from first: Route) -> Route? {
    let world = linked(over: first, or: other)
    let challenged = findPeer(at: other, [(first, .milliseconds(20)), (other, delay)], in: world)
    #expect(challenged == [first, other])
    return world.nodes[0].engine.route(of: world.link(to: 1))
  }

  @Test(arguments: [
    (2, true), (6, true), (8, false), (20, false), (23, false), (40, false),
  ])
  func theFasterOfTwoPublicAddressesWins(milliseconds: Int, wins: Bool) {
    let other = Route.direct(Address(host: .v4(0xC633_6408), port: 1000))
    let result = route(after: .milliseconds(Int64(milliseconds)), at: other, from: Self.far)
    #expect(result == (wins ? other : Self.far))
  }

  @Test(arguments: [(2, true), (20, true), (29, true), (31, false), (60, false)])
  func aNearerAddressWinsUnlessItIsSlower(milliseconds: Int, wins: Bool) {
    let result = route(after: .milliseconds(Int64(milliseconds)), at: Self.near, from: Self.far)
    #expect(result == (wins ? Self.near : Self.far))
  }

  @Test func aLinkLocalAddressIsNoNearerThanAPrivateOne() {
    let linkLocal = Route.direct(Address(host: .v4(0xA9FE_0105), port: 1000))
    #expect(route(after: .milliseconds(18), at: linkLocal, from: Self.near) == Self.near)
  }

  @Test func aFartherAddressDoesNotWinByBeingThere() {
    #expect(route(after: .milliseconds(18), at: Self.far, from: Self.near) == Self.near)
  }

  @Test func aPathThatStaysSilentIsLeft() {
    let world = linked(over: Self.near, or: Self.far)
    _ = findPeer(at: Self.far, [(Self.far, .milliseconds(20))], in: world)
    world.run(for: .milliseconds(900))
    #expect(world.nodes[0].engine.route(of: world.link(to: 1)) == Self.near)
    world.run(for: .milliseconds(200))
    #expect(world.nodes[0].engine.route(of: world.link(to: 1)) == Self.far)
  }

  @Test func aPathWhoseResponseIsLostIsKeptIfThePeerIsHeard() {
    let world = linked(over: Self.near, or: Self.far)
    _ = findPeer(at: Self.far, [(Self.far, .milliseconds(20))], in: world)
    world.run(for: .milliseconds(500))
    world.say("still here", from: 1, to: 0)
    world.run(for: .seconds(2))
    #expect(world.nodes[0].engine.route(of: world.link(to: 1)) == Self.near)
  }

  @Test func nobodyMovesToAPathThatHasNotResponded() {
    let world = linked(over: Self.near, or: Self.far)
    _ = findPeer(at: Self.far, [], in: world)
    world.run(for: .seconds(2))
    #expect(world.nodes[0].engine.route(of: world.link(to: 1)) == Self.near)
  }

  /// The times after which node 0 challenges both addresses, in the 60 s after a first comparison,
  /// while discovery finds the other one every second.
  private func comparisons(_ roundTrips: [(route: Route, time: Duration)]) -> [Int] {
    let world = linked(over: Self.near, or: Self.far)
    #expect(findPeer(at: Self.far, roundTrips, in: world).count == 2)
    return (1...60).filter { _ in
      world.say("I am here", from: 1, to: 0)
      world.run(for: .seconds(1))
      return !findPeer(at: Self.far, roundTrips, in: world).isEmpty
    }
  }

  @Test func comparisonsAreRare() {
    let unanswered = [(route: Self.near, time: Duration.milliseconds(20))]
    #expect(comparisons(unanswered) == Array(stride(from: 5, through: 60, by: 5)))
    #expect(comparisons(unanswered + [(Self.far, .milliseconds(20))]) == [30, 60])
  }
}

/// Paths through a relaying neighbour.
struct RelayedPathTests {
  private let relayed = LinkWorld.relayed(1)
  private let other = LinkWorld.relayed(2)

  /// Makes node 0 send through a neighbour from now on.
  private func speakThrough(_ route: Route, _ world: LinkWorld) {
    world.nodes[0].route = route
    world.nodes[0].reachableAt.append(route)
  }

  private func path(_ world: LinkWorld) -> Route? {
    world.nodes[1].engine.route(of: world.link(to: 0))
  }

  @Test func aLinkWithoutDirectTrafficFollowsAtOnce() {
    let world = LinkWorld.linked()
    world.run(for: .seconds(1))
    speakThrough(relayed, world)
    world.say("relayed", from: 0, to: 1)
    world.run(for: .milliseconds(10))
    #expect(path(world) == relayed)
    #expect(world.nodes[1].engine.counters.challengesSent == 0)
  }

  @Test func aLinkWithDirectTrafficStays() {
    let world = LinkWorld.linked()
    world.say("directly", from: 0, to: 1)
    world.run(for: .milliseconds(50))
    speakThrough(relayed, world)
    world.say("relayed", from: 0, to: 1)
    world.run(for: .milliseconds(20))
    #expect(path(world) == LinkWorld.route(0))
    #expect(world.heard(1).count == 2)
  }

  @Test func fromOneNeighbourToAnother() {
    let world = LinkWorld.linked()
    world.run(for: .seconds(1))
    speakThrough(relayed, world)
    world.say("relayed", from: 0, to: 1)
    world.run(for: .milliseconds(20))
    speakThrough(other, world)
    world.say("relayed by another", from: 0, to: 1)
    world.run(for: .milliseconds(20))
    #expect(path(world) == other)
  }

  @Test func aDirectPathIsChallengedAndTaken() {
    let world = LinkWorld.linked()
    world.run(for: .seconds(1))
    speakThrough(relayed, world)
    world.say("relayed", from: 0, to: 1)
    world.run(for: .milliseconds(20))
    world.nodes[0].route = LinkWorld.route(0)
    world.say("directly", from: 0, to: 1)
    world.run(for: .milliseconds(15))
    #expect(path(world) == relayed)
    world.run(for: .milliseconds(20))
    #expect(path(world) == LinkWorld.route(0))
  }

  @Test(arguments: [true, false])
  func aRelayedResponseMovesNothingOnceThePeerIsHeard(isHeard: Bool) {
    let world = LinkWorld.linked()
    let link = world.link(to: 0)
    world.run(for: .seconds(1))
    world.nodes[0].reachableAt.append(relayed)
    world.perform(1, world.nodes[1].engine.probe(link, over: relayed, now: world.now))
    if isHeard {
      world.say("directly", from: 0, to: 1)
      world.run(for: .milliseconds(10))
    }
    world.nodes[0].route = relayed
    world.run(for: .milliseconds(30))
    #expect(path(world) == (isHeard ? LinkWorld.route(0) : relayed))
  }

  @Test func ownChallengesLeaveRoomForThoseThatOthersBringAbout() {
    let world = LinkWorld.linked()
    let link = world.link(to: 0)
    world.run(for: .seconds(1))
    // No node answers at that route.
    world.perform(1, world.nodes[1].engine.probe(link, over: relayed, now: world.now))
    let elsewhere = Route.direct(Address(host: .v4(0x0A00_0063), port: 2000))
    world.nodes[0].route = elsewhere
    world.nodes[0].reachableAt.append(elsewhere)
    world.say("from elsewhere", from: 0, to: 1)
    world.run(for: .milliseconds(60))
    #expect(path(world) == elsewhere)
  }
}

/// Path choice at both ends over several paths, over time.
struct SteadyPathTests {
  /// Two nodes with two addresses each, sending all the time; discovery keeps reporting both
  /// addresses of one to the other. Returns the number of path changes.
  private func moves(seconds: Int, over far: Duration) -> Int {
    let world = LinkWorld(2)
    world.delay = far
    let second = Route.direct(Address(host: .v4(0x0A00_0101), port: 1000))
    world.nodes[1].reachableAt.append(second)
    world.connect(0, to: 1)
    world.run(for: .seconds(1))
    let link = world.link(to: 1)
    for step in 0..<(seconds * 50) {
      world.say("I", from: 0, to: 1)
      world.say("and I", from: 1, to: 0)
      world.run(for: .milliseconds(20))
      guard step % 50 == 0 else { continue }
      for address in [LinkWorld.route(1), second] {
        world.perform(
          0,
          world.nodes[0].engine.connect(
            to: world.nodes[1].id, bootID: world.nodes[1].bootID, in: link.key, over: address,
            now: world.now))
      }
    }
    return [0, 1].flatMap { world.states($0) }.count {
      if case .moved = $0 { true } else { false }
    }
  }

  @Test(arguments: [1, 60])
  func equallyGoodPathsAreNotExchanged(delay: Int) {
    #expect(moves(seconds: 30, over: .milliseconds(Int64(delay))) == 0)
  }

  @Test func aChallengeFromElsewhereIsNoMove() {
    let world = LinkWorld.linked()
    let other = Route.direct(Address(host: .v4(0x0A00_0063), port: 2000))
    // Node 0 sends one challenge from another address, without moving to it.
    world.nodes[0].route = other
    world.nodes[0].reachableAt.append(other)
    world.perform(
      0,
      world.nodes[0].engine.probe(world.link(to: 1), over: LinkWorld.route(1), now: world.now))
    world.nodes[0].route = LinkWorld.route(0)
    world.run(for: .seconds(2))
    #expect(world.nodes[1].engine.route(of: world.link(to: 0)) == LinkWorld.route(0))
    #expect(world.nodes[1].engine.counters.challengesSent == 0)
  }

  @Test func aDirectPathIsKeptWhileRelayedDatagramsStillArrive() {
    let world = LinkWorld.linked()
    world.delay = .milliseconds(60)
    let relayed = LinkWorld.relayed(1)
    world.run(for: .seconds(1))
    world.nodes[0].route = relayed
    world.nodes[0].reachableAt.append(relayed)
    world.say("relayed", from: 0, to: 1)
    world.run(for: .milliseconds(100))
    let link = world.link(to: 0)
    #expect(world.nodes[1].engine.route(of: link) == relayed)
    // The direct path opens: node 1 probes it, and node 0 responds directly but still sends
    // through its neighbour for a while.
    world.perform(1, world.nodes[1].engine.probe(link, over: LinkWorld.route(0), now: world.now))
    world.run(for: .milliseconds(50))
    world.nodes[0].route = LinkWorld.route(0)
    world.run(for: .milliseconds(100))
    #expect(world.nodes[1].engine.route(of: link) == LinkWorld.route(0))
    world.nodes[0].route = relayed
    // Node 0 may not challenge the direct path for a second, and then needs a round trip.
    for (count, route) in [(60, LinkWorld.route(0)), (30, relayed)] {
      for _ in 0..<count {
        world.say("still relayed", from: 0, to: 1)
        world.run(for: .milliseconds(20))
      }
      #expect(world.nodes[1].engine.route(of: link) == route)
    }
  }
}

/// A response after a minute must not make an interval of minutes between datagrams look normal.
@Test func aSlowAnswerDoesNotMakeAPathLookWell() {
  let world = LinkWorld.linked()
  let elsewhere = Route.direct(Address(host: .v4(0x0A00_0063), port: 2000))
  let link = world.link(to: 0)
  var held: [UInt8]?
  let outputs = world.nodes[1].engine.probe(link, over: elsewhere, now: world.now)
  for case .send(let datagram, _) in outputs { held = datagram }
  // The path in use is silent, else the link would stay on it.
  world.passes = { _ in false }
  world.run(for: .seconds(20))
  world.passes = { _ in true }
  let answers = world.nodes[0].engine.receive(
    held ?? [], from: LinkWorld.route(1), at: world.now)
  for case .send(let datagram, _) in answers {
    world.perform(1, world.nodes[1].engine.receive(datagram, from: elsewhere, at: world.now))
  }
  #expect(world.nodes[1].engine.route(of: link) == elsewhere)
  let late = world.nodes[1].engine.liveness(of: link)?.lateAt
  #expect(late.map { $0 <= world.now + .seconds(3) } ?? false)
}
