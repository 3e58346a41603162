import MusterBase
import MusterCrypto
import MusterLink
import MusterWire
import Testing

@Test func aLinkStandsAfterOneRoundTrip() {
  let world = LinkWorld()
  let start = world.now
  world.connect(0, to: 1)
  world.run(for: .milliseconds(100))
  #expect(
    world.states(0) == [
      .established(world.link(to: 1), route: LinkWorld.route(1), bootID: 2)
    ])
  #expect(
    world.states(1) == [
      .established(world.link(to: 0), route: LinkWorld.route(0), bootID: 1)
    ])
  #expect(world.changes(0).map { $0.at - start } == [.milliseconds(20)])
  // The responder reports the link once the initiator has used the session.
  #expect(world.changes(1).map { $0.at - start } == [.milliseconds(30)])
  #expect(world.sent(0, .handshakeInitiation).count == 1)
  #expect(world.sent(1, .handshakeResponse).count == 1)
}

@Test func aPayloadArrivesOnce() {
  let world = LinkWorld.linked()
  #expect(world.say("one", from: 0, to: 1))
  #expect(world.say("two", from: 1, to: 0))
  #expect(world.say("", from: 0, to: 1))
  world.run(for: .milliseconds(100))
  #expect(world.heard(1) == ["one", ""])
  #expect(world.heard(0) == ["two"])
}

@Test func handshakeMessagesHaveTheirLengths() {
  let world = LinkWorld.linked()
  #expect(world.sent(0, .handshakeInitiation).map(\.datagram.count) == [193])
  #expect(world.sent(1, .handshakeResponse).map(\.datagram.count) == [101])
}

@Test func ofTwoThatOpenAtOnceTheSmallerIsAnswered() {
  let world = LinkWorld()
  world.connect(0, to: 1)
  world.connect(1, to: 0)
  world.run(for: .seconds(5))
  #expect(world.states(0).count == 1 && world.states(1).count == 1)
  #expect(world.isUp(0, 1) && world.isUp(1, 0))
  #expect(world.nodes.map { $0.engine.counters.sessionsMade } == [1, 1])
  #expect(world.nodes[0].engine.counters.tieBreaks == 1)
  #expect(world.sent(0, .handshakeResponse).isEmpty)
}

@Test func theSmallerIDRespondsWhenItsOwnInitiationsAreBlocked() {
  let world = LinkWorld()
  world.passes = { [a = world.nodes[0].route] in
    $0.kind != .handshakeInitiation || $0.from != a
  }
  world.connect(0, to: 1)
  world.connect(1, to: 0)
  world.run(for: .seconds(4))
  #expect(world.isUp(0, 1) && world.isUp(1, 0))
}

@Test func anUnansweredInitiationIsRepeatedAfterAQuarterSecondAndLater() {
  let world = LinkWorld()
  world.passes = { _ in false }
  let start = world.now
  world.connect(0, to: 1)
  world.run(for: .seconds(120))
  let times = world.sent(0, .handshakeInitiation).map {
    (($0.arrivesAt - start) - world.delay).inSeconds
  }
  let gaps = zip(times, times.dropFirst()).map { $1 - $0 }
  #expect(times.first == 0)
  for (gap, expected) in zip(gaps, [0.25, 0.5, 1, 2, 4, 5, 5, 5]) {
    #expect(abs(gap - expected) <= expected * 0.11, "\(gaps)")
  }
  #expect((times.last ?? 0) < 90)
  #expect(world.nodes[0].engine.counters.handshakesGivenUp == 1)
  #expect(world.states(0).isEmpty)
  #expect(world.nodes[0].engine.deadline == nil)
}

@Test func repeatedInitiationsDifferInEveryKey() {
  let world = LinkWorld()
  world.passes = { _ in false }
  world.connect(0, to: 1)
  world.run(for: .seconds(20))
  let ephemerals = world.sent(0, .handshakeInitiation).map { Array($0.datagram[5..<37]) }
  #expect(Set(ephemerals).count == ephemerals.count)
}

@Test func aRoundTripLongerThanTheRetryStillOpensAtOnce() {
  let world = LinkWorld()
  world.delay = .milliseconds(500)
  let start = world.now
  world.connect(0, to: 1)
  world.run(for: .seconds(5))
  #expect(world.nodes[0].events.first.map { $0.at - start } == .seconds(1))
  #expect(world.states(0).count == 1 && world.states(1).count == 1)
}

@Test func aLostFirstKeepaliveIsRepeatedUntilTheResponderIsSure() {
  let world = LinkWorld()
  var lost = 0
  world.passes = {
    guard $0.kind == .data, lost < 3 else { return true }
    lost += 1
    return false
  }
  world.connect(0, to: 1)
  world.run(for: .seconds(3))
  #expect(world.isUp(1, 0))
  #expect(lost == 3)
}

@Test func aPeerThatRestartsReplacesItsLink() {
  let world = LinkWorld()
  world.connect(0, to: 1)
  world.run(for: .seconds(1))
  world.restart(0, boot: 77)
  world.connect(0, to: 1)
  world.run(for: .seconds(1))
  let link = world.link(to: 0)
  #expect(
    world.states(1) == [
      .established(link, route: LinkWorld.route(0), bootID: 1),
      .closed(link, .replaced),
      .established(link, route: LinkWorld.route(0), bootID: 77),
    ])
  #expect(world.say("again", from: 1, to: 0))
  world.run(for: .seconds(1))
  #expect(world.heard(0) == ["again"])
}

@Test func aPeerThatRestartsIsAlsoReplacedFromTheOtherSide() {
  let world = LinkWorld()
  world.connect(0, to: 1)
  world.run(for: .seconds(1))
  world.restart(0, boot: 77)
  world.connect(1, to: 0)
  world.run(for: .seconds(1))
  #expect(world.states(1).dropFirst().first == .closed(world.link(to: 0), .replaced))
  #expect(world.states(1).count == 3)
  #expect(world.isUp(0, 1) && world.isUp(1, 0))
}

@Test func connectingAgainDoesNothingWhileALinkStands() {
  let world = LinkWorld.linked()
  let sent = world.nodes[0].sent.count
  world.connect(0, to: 1)
  world.connect(1, to: 0)
  #expect(world.nodes[0].sent.count == sent)
  world.run(for: .seconds(1))
  #expect(world.nodes.map { $0.engine.counters.sessionsMade } == [1, 1])
}

/// At a loss of up to 40 %, the link comes up, and each payload arrives at most once.
@Test(arguments: 1...20)
func linksComeUpThroughLoss(seed: Int) {
  let world = LinkWorld(2, seed: UInt64(seed))
  var random = PRNG(seed: UInt64(seed))
  let loss = Double(seed % 5) / 10
  world.passes = { _ in !random.chance(loss) }
  world.connect(0, to: 1)
  if seed % 2 == 0 { world.connect(1, to: 0) }
  world.run(for: .seconds(60))
  #expect(world.isUp(0, 1) && world.isUp(1, 0), "seed \(seed)")
  for number in 0..<50 {
    world.say("\(number)", from: seed % 2, to: 1 - seed % 2)
    world.run(for: .milliseconds(20))
  }
  let heard = world.heard(1 - seed % 2)
  #expect(Set(heard).count == heard.count, "seed \(seed)")
  #expect(heard.count > 5, "seed \(seed)")
}

@Test func ticksBeforeTheDeadlineDoNothing() {
  let world = LinkWorld.linked()
  for node in 0...1 {
    guard let deadline = world.nodes[node].engine.deadline else {
      Issue.record("a standing link has a deadline")
      continue
    }
    let before = Instant(nanoseconds: deadline.nanoseconds - 1)
    #expect(world.nodes[node].engine.tick(at: before).isEmpty)
    #expect(world.nodes[node].engine.deadline == deadline)
  }
}

@Test func linksAreBounded() {
  let world = LinkWorld()
  var engine = world.nodes[0].twin()
  // The limit applies to each key, so that links under one key do not prevent those under another.
  for number in 0..<(LinkEngine.linksPerKey + 20) {
    let peer = LinkWorld.identity(UInt64(50_000 + number))
    _ = engine.connect(
      to: peer.id, bootID: 1, in: LinkWorld.key.keyID, over: LinkWorld.route(9),
      now: world.now)
  }
  #expect(engine.counters.initiationsSent == UInt64(LinkEngine.linksPerKey))
  #expect(engine.counters.refused == 20)
}
