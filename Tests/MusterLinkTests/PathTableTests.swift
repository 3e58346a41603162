import MusterBase
import MusterCrypto
import MusterLink
import MusterWire
import Testing

/// The path table of an engine, which its links share.
struct PathTableTests {
  private func path(_ world: LinkWorld, _ route: Route = LinkWorld.route(0)) -> Path? {
    world.nodes[1].engine.paths[PathID(peer: world.nodes[0].id, route: route)]
  }

  @Test func linksUnderTwoKeysShareAPath() {
    let world = LinkWorld.linked()
    let other = ChannelKey.fromName("another channel")
    for node in 0...1 { world.nodes[node].engine.open(other) }
    world.perform(
      0,
      world.nodes[0].engine.connect(
        to: world.nodes[1].id, bootID: world.nodes[1].bootID, in: other.keyID,
        over: LinkWorld.route(1), now: world.now))
    world.run(for: .milliseconds(200))
    #expect(world.nodes[0].engine.establishedLinks.count == 2)
    #expect(world.nodes[0].engine.paths.count == 1)
    #expect(world.nodes[1].engine.paths.count == 1)
  }

  @Test func datagramsArriveWithTheirRouteAndNumber() {
    let world = LinkWorld.linked()
    var sent: [UInt64] = []
    for _ in 0..<5 {
      let sealed = world.nodes[0].engine.seal(
        OutgoingPayload([1]), on: world.link(to: 1), at: world.now)
      guard let sealed else { continue }
      #expect(sealed.route == LinkWorld.route(1))
      sent.append(sealed.packetNumber)
      world.perform(0, [.send(sealed.datagram, over: sealed.route)])
    }
    world.run(for: .milliseconds(20))
    var arrived: [UInt64] = []
    for case .delivered(_, [1], over: LinkWorld.route(0), let packet)
      in world.nodes[1].events.map(\.output)
    {
      arrived.append(packet.number)
    }
    #expect(sent.count == 5)
    #expect(zip(sent, sent.dropFirst()).allSatisfy { $1 == $0 + 1 })
    #expect(arrived == sent)
    #expect(path(world)?.received.lastPacketNumber == sent.last)
  }

  @Test func anAnsweredChallengeValidatesAndMeasures() {
    let world = LinkWorld.linked()
    let elsewhere = Route.direct(Address(host: .v4(0x0A00_0063), port: 2000))
    world.nodes[0].route = elsewhere
    world.nodes[0].reachableAt.append(elsewhere)
    world.say("from elsewhere", from: 0, to: 1)
    world.run(for: .milliseconds(12))
    let asked = world.now
    if case .validating? = path(world, elsewhere)?.validation(at: asked) {
    } else {
      Issue.record("\(String(describing: path(world, elsewhere)))")
    }
    world.run(for: .milliseconds(30))
    if case .validated? = path(world, elsewhere)?.validation(at: world.now) {
    } else {
      Issue.record("\(String(describing: path(world, elsewhere)))")
    }
    #expect(path(world, elsewhere)?.roundTrip?.minimum == .milliseconds(20))
    #expect(
      world.nodes[1].engine.paths.lastDirectRoute(to: world.nodes[0].id) == elsewhere.address)
  }

  @Test func anUnansweredChallengeFails() {
    let world = LinkWorld.linked()
    let nowhere = Route.direct(Address(host: .v4(0x0A00_0064), port: 2000))
    world.perform(1, world.nodes[1].engine.probe(world.link(to: 0), over: nowhere, now: world.now))
    world.run(for: .seconds(4))
    #expect(path(world, nowhere)?.validation(at: world.now) == .failed)
    #expect(
      world.nodes[1].engine.paths.lastDirectRoute(to: world.nodes[0].id)
        == LinkWorld.route(0).address)
  }

  @Test func theAddressOfAPeerOutlivesItsLink() {
    let world = LinkWorld.linked()
    world.perform(
      0, world.nodes[0].engine.close(world.link(to: 1), reason: .local, at: world.now))
    world.run(for: .seconds(1))
    #expect(!world.isUp(1, 0))
    #expect(
      world.nodes[1].engine.paths.lastDirectRoute(to: world.nodes[0].id)
        == LinkWorld.route(0).address)
  }

  @Test func aPeerWithManyAddressesHasABoundedNumberOfPaths() {
    let world = LinkWorld.linked()
    for port in 2000..<2100 {
      let route = Route.direct(Address(host: .v4(0x0A00_0063), port: UInt16(port)))
      world.nodes[0].route = route
      world.say("from elsewhere", from: 0, to: 1)
      world.run(for: .milliseconds(20))
    }
    #expect(world.nodes[1].engine.paths.count <= PathTable.routesPerPeer)
    #expect(world.nodes[1].engine.route(of: world.link(to: 0)) == LinkWorld.route(0))
  }

  /// A datagram over a relayed route that names another peer is not opened.
  @Test func aRelayedRouteLeadsToOnePeerOnly() {
    let world = LinkWorld.linked()
    world.run(for: .seconds(1))
    let wrong = Route.relayed(
      to: LinkWorld.identity(77).id, by: LinkWorld.identity(78).id, in: LinkWorld.key.channelID)
    world.nodes[0].route = wrong
    world.say("relayed", from: 0, to: 1)
    world.run(for: .milliseconds(20))
    #expect(world.heard(1).isEmpty)
    #expect(world.nodes[1].engine.route(of: world.link(to: 0)) == LinkWorld.route(0))
  }
}
