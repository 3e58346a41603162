import MusterBase
import MusterCrypto
import MusterLink
import MusterWire
import Testing

private let elsewhere = Route.direct(Address(host: .v4(0x0A00_0063), port: 2000))
private let unknownRoute = Route.direct(Address(host: .v4(0xC0A8_0101), port: 4444))

@Test func aPathMovesOnlyAfterAChallengeIsAnsweredFromThere() {
  let world = LinkWorld.linked()
  world.nodes[0].route = elsewhere
  world.nodes[0].reachableAt.append(elsewhere)
  world.say("from elsewhere", from: 0, to: 1)
  world.run(for: .milliseconds(15))
  // The payload is delivered, but replies still go to the old address.
  #expect(world.heard(1) == ["from elsewhere"])
  #expect(world.nodes[1].engine.route(of: world.link(to: 0)) == LinkWorld.route(0))
  world.run(for: .milliseconds(100))
  #expect(world.states(1).last == .moved(world.link(to: 0), to: elsewhere))
  #expect(world.nodes[1].engine.route(of: world.link(to: 0)) == elsewhere)
  world.say("back", from: 1, to: 0)
  #expect(world.nodes[1].sent.last?.to == elsewhere)
  // The peer has not moved, so its address stays the same.
  #expect(world.nodes[0].engine.route(of: world.link(to: 1)) == LinkWorld.route(1))
}

@Test func aDatagramCaughtAndSentFromElsewhereMovesNothing() {
  let world = LinkWorld.linked()
  for _ in 0..<20 {
    world.passes = { _ in false }
    world.say("caught", from: 0, to: 1)
    let caught = world.nodes[0].sent[world.nodes[0].sent.count - 1].datagram
    world.passes = { _ in true }
    world.perform(1, world.nodes[1].engine.receive(caught, from: unknownRoute, at: world.now))
    world.run(for: .milliseconds(300))
  }
  #expect(world.heard(1).count == 20)
  #expect(world.states(1).count == 1)
  #expect(world.nodes[1].engine.route(of: world.link(to: 0)) == LinkWorld.route(0))
  // Six seconds: two challenges at once, then one a second.
  #expect((7...8).contains(world.nodes[1].engine.counters.challengesSent))
}

@Test func aLateDatagramFromAnotherAddressTriggersNoChallenge() {
  let world = LinkWorld.linked()
  world.passes = { _ in false }
  world.say("late", from: 0, to: 1)
  let late = world.nodes[0].sent[world.nodes[0].sent.count - 1].datagram
  world.passes = { _ in true }
  world.say("early", from: 0, to: 1)
  world.run(for: .milliseconds(100))
  let outputs = world.nodes[1].engine.receive(late, from: unknownRoute, at: world.now)
  #expect(outputs.count == 1)
  #expect(world.nodes[1].engine.counters.challengesSent == 0)
}

@Test func aQuietPeerIsLookedForWhereDiscoverySeesIt() {
  let world = LinkWorld.linked()
  world.nodes[1].route = elsewhere
  world.nodes[1].reachableAt = [elsewhere]
  world.run(for: .seconds(4))
  world.connect(0, to: 1)
  world.run(for: .milliseconds(100))
  #expect(world.states(0).last == .moved(world.link(to: 1), to: elsewhere))
}

@Test func aNewSessionThroughANewAddressMovesThePath() {
  let world = LinkWorld.linked()
  world.nodes[0].route = elsewhere
  world.nodes[0].reachableAt = [elsewhere]
  world.run(for: .seconds(125))
  #expect(world.states(1).contains(.moved(world.link(to: 0), to: elsewhere)))
  #expect(world.say("back", from: 1, to: 0))
  world.run(for: .milliseconds(100))
  #expect(world.heard(0) == ["back"])
}

/// At whatever time node 0 sees its peer: the challenges of a silent link repeat every 2 s, so the
/// latest one is often too recent to count as unanswered, but the first one is not.
@Test(arguments: Array(stride(from: 6_000, through: 8_000, by: 250)))
func aPeerThatLostItsSessionGetsANewOne(seenAfter milliseconds: Int) {
  let world = LinkWorld.linked()
  // It leaves and returns in one process; its close message is lost.
  world.passes = { _ in false }
  world.perform(
    1, world.nodes[1].engine.close(key: LinkWorld.key.keyID, at: world.now))
  world.nodes[1].engine.open(LinkWorld.key)
  world.passes = { _ in true }
  world.run(for: .milliseconds(milliseconds))
  #expect(world.isUp(0, 1) && !world.isUp(1, 0))
  // Only node 0 finds its peer, and its challenges have already failed.
  world.connect(0, to: 1)
  world.run(for: .milliseconds(200))
  #expect(world.isUp(1, 0))
  world.say("again", from: 0, to: 1)
  world.run(for: .milliseconds(100))
  #expect(world.heard(1) == ["again"])
}

@Test func aRecoveredPathIsUsedAtOnce() {
  let world = LinkWorld.linked()
  world.passes = { _ in false }
  world.run(for: .seconds(15))
  world.passes = { _ in true }
  world.run(for: .milliseconds(2100))
  for (node, peer) in [(0, 1), (1, 0)] {
    let heard = world.nodes[node].engine.lastHeard(world.link(to: peer))
    #expect(heard.map { world.now - $0 < .seconds(3) } ?? false)
  }
  #expect(world.nodes[0].engine.counters.sessionsMade == 1)
}
