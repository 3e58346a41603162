import MusterBase
import MusterCrypto
import MusterLink
import MusterWire
import Testing

@Test func sessionsAreReplacedEveryTwoMinutesWithoutLosingAPacket() {
  let world = LinkWorld.linked()
  var sent = 0
  while sent < 8000 {
    #expect(world.say("a\(sent)", from: 0, to: 1) && world.say("b\(sent)", from: 1, to: 0))
    world.run(for: .milliseconds(50))
    sent += 1
  }
  world.run(for: .seconds(1))
  #expect(world.heard(1) == (0..<sent).map { "a\($0)" })
  #expect(world.heard(0) == (0..<sent).map { "b\($0)" })
  // In 400 s, sessions begin at 0, 120, 240 and 360 s.
  #expect(world.nodes.map { $0.engine.counters.sessionsMade } == [4, 4])
  #expect(world.states(0).count == 1 && world.states(1).count == 1)
}

@Test func theInitiatorBeginsTheNextSessionAfter120Seconds() {
  let world = LinkWorld.linked()
  let opened = world.nodes[0].events[0].at
  world.run(for: .seconds(130))
  let second = world.sent(0, .handshakeInitiation).dropFirst().first
  #expect(second.map { ($0.arrivesAt - opened) - world.delay } == .seconds(120))
  #expect(world.sent(1, .handshakeInitiation).isEmpty)
}

@Test func theResponderBeginsItWhenTheInitiatorDoesNot() {
  let world = LinkWorld.linked()
  world.passes = { [a = world.nodes[0].route] in
    $0.kind != .handshakeInitiation || $0.from != a
  }
  world.run(for: .seconds(160))
  #expect(world.sent(1, .handshakeInitiation).isEmpty == false)
  #expect(world.nodes.map { $0.engine.counters.sessionsMade } == [2, 2])
}

@Test func aSessionIsRejectedAfter180Seconds() {
  let world = LinkWorld.linked()
  let opened = world.nodes[0].events[0].at
  world.passes = { $0.kind == .data }
  world.run(until: opened + .seconds(170))
  #expect(world.say("late", from: 0, to: 1))
  world.run(until: opened + .seconds(179))
  #expect(world.heard(1) == ["late"])
  #expect(world.say("last", from: 0, to: 1))
  world.run(until: opened + .seconds(180))
  #expect(!world.say("too late", from: 0, to: 1))
  #expect(!world.say("too late", from: 1, to: 0))
  #expect(world.heard(1) == ["late", "last"])
  world.run(for: .seconds(120))
  #expect(world.states(0).last == .closed(world.link(to: 1), .timedOut))
  #expect(world.states(1).last == .closed(world.link(to: 0), .timedOut))
  #expect(world.nodes[0].engine.deadline == nil && world.nodes[1].engine.deadline == nil)
}

@Test func dataUnderAnExpiredSessionAreNotOpened() {
  let world = LinkWorld.linked()
  world.say("kept", from: 0, to: 1)
  let kept = world.nodes[0].sent[world.nodes[0].sent.count - 1].datagram
  var engine = world.nodes[1].twin()
  let outputs = engine.receive(
    kept, from: LinkWorld.route(0), at: world.now + .seconds(181))
  #expect(outputs.isEmpty)
  #expect(engine.counters.expired == 1)
}

@Test func noNonceIsUsedTwice() {
  let world = LinkWorld.linked()
  var random = PRNG(seed: 4)
  world.passes = { _ in !random.chance(0.2) }
  for number in 0..<6000 {
    world.say("\(number)", from: number % 2, to: 1 - number % 2)
    world.run(for: .milliseconds(50))
  }
  for node in 0...1 {
    // Bytes 1 to 12 are the receiver index, which is random for each session, and the counter.
    let headers = world.sent(node, .data).map { Array($0.datagram[1..<13]) }
    #expect(headers.count > 3000)
    #expect(Set(headers).count == headers.count)
  }
}

@Test func keepalivesAreSentOnlyInSilence() {
  // Silence probes must come later than keepalives here, because they would replace them.
  var configuration = LinkEngine.Configuration()
  configuration.silenceProbeAfter = .seconds(20)
  let quiet = LinkWorld.linked(configuration)
  let before = quiet.sent(0, .data).count
  quiet.run(for: .seconds(110))
  let count = quiet.sent(0, .data).count - before
  #expect((6...9).contains(count), "\(count) in 110 s")

  let busy = LinkWorld.linked()
  let keepalives = busy.nodes[0].engine.counters.keepalivesSent
  for _ in 0..<110 {
    busy.say("x", from: 0, to: 1)
    busy.run(for: .seconds(1))
  }
  #expect(busy.nodes[0].engine.counters.keepalivesSent == keepalives)
}

@Test func aSilentPeerIsGivenUpAfterThreeKeepalives() {
  let world = LinkWorld.linked()
  let start = world.now
  world.passes = { _ in false }
  world.run(for: .seconds(60))
  let closed = world.nodes[0].events.last
  #expect(closed?.output == .closed(world.link(to: 1), .timedOut))
  let after = closed.map { ($0.at - start).inSeconds } ?? 0
  #expect((44...46).contains(after))
}

@Test func closingTellsThePeer() {
  let world = LinkWorld.linked()
  world.perform(0, world.nodes[0].engine.close(world.link(to: 1), reason: .local, at: world.now))
  world.run(for: .seconds(1))
  #expect(world.states(0).last == .closed(world.link(to: 1), .local))
  #expect(world.states(1).last == .closed(world.link(to: 0), .left))
  #expect(!world.say("x", from: 0, to: 1) && !world.say("x", from: 1, to: 0))
  world.connect(1, to: 0)
  world.run(for: .seconds(1))
  #expect(world.isUp(0, 1) && world.isUp(1, 0))
}

@Test func closingAChannelEndsItsLinksAndItsAnswers() {
  let world = LinkWorld.linked()
  world.perform(
    1, world.nodes[1].engine.close(key: LinkWorld.key.keyID, at: world.now))
  world.run(for: .seconds(1))
  #expect(world.states(0).last == .closed(world.link(to: 1), .left))
  let sent = world.nodes[1].sent.count
  world.connect(0, to: 1)
  world.run(for: .seconds(5))
  #expect(world.nodes[1].sent.count == sent)
}

@Test func unknownPayloadsAreCountedAndChangeNothing() {
  let world = LinkWorld.linked()
  let before = world.states(1)
  for payload in [[0x7F, 1], [PayloadKind.pathByte], [PayloadKind.pathByte, 9], [0xC0]] as [[UInt8]]
  {
    let sealed = world.nodes[0].engine.seal(
      OutgoingPayload(payload), on: world.link(to: 1), at: world.now)
    if let sealed { world.perform(0, [.send(sealed.datagram, over: sealed.route)]) }
  }
  world.run(for: .milliseconds(100))
  #expect(world.states(1) == before)
  #expect(world.nodes[1].engine.counters.unknownPayloads == 4)
  #expect(world.isUp(1, 0))
}

@Test func everyPacketOfASessionIsDeliveredWithItsNumber() {
  let world = LinkWorld.linked()
  for payload in [[PayloadKind.keepaliveByte], [PayloadKind.pathByte, 9], [0xC0]] as [[UInt8]] {
    let sealed = world.nodes[0].engine.seal(
      OutgoingPayload(payload), on: world.link(to: 1), at: world.now)
    if let sealed { world.perform(0, [.send(sealed.datagram, over: sealed.route)]) }
  }
  // The second session begins at 120 s.
  world.run(for: .seconds(130))
  let received = world.packets(1)
  let sent = world.sent(0, .data)
  #expect(received.map(\.bytes) == sent.map(\.datagram.count))
  let sessions = received.map(\.session)
  let second = received.firstIndex { $0.session != sessions[0] }
  #expect(second.map { $0 >= 4 } ?? false && Set(sessions).count == 2)
  for session in Set(sessions) {
    let numbers = received.filter { $0.session == session }.map(\.number)
    #expect(numbers == Array(0..<UInt64(numbers.count)))
  }
}

@Test(arguments: [false, true])
func aCapabilityIsInForceIfBothEndsOfferIt(isOffered: Bool) {
  let world = LinkWorld(1)
  var configuration = LinkEngine.Configuration()
  if !isOffered { configuration.capabilities = [] }
  let other = LinkWorld(1, configuration, seed: 7)
  world.nodes.append(other.nodes[0])
  world.nodes[1].route = LinkWorld.route(1)
  world.nodes[1].reachableAt = [LinkWorld.route(1)]
  world.connect(0, to: 1)
  world.run(for: .seconds(20))
  for node in 0...1 {
    let packets = world.packets(node)
    #expect(!packets.isEmpty)
    #expect(packets.allSatisfy { $0.capabilities == configuration.capabilities })
  }
}
