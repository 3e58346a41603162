import MusterBase
import MusterCrypto
import MusterLink
import MusterWire
import Testing

private let unknownRoute = Route.direct(Address(host: .v4(0xC0A8_0101), port: 4444))

@Test func replaysGetNothingFromAnywhere() {
  let world = LinkWorld.linked()
  world.say("once", from: 0, to: 1)
  world.say("once", from: 1, to: 0)
  world.run(for: .seconds(1))
  for victim in 0...1 {
    for flight in world.nodes[1 - victim].sent {
      for source in [flight.from, unknownRoute] {
        let outputs = world.nodes[victim].engine.receive(
          flight.datagram, from: source, at: world.now)
        #expect(outputs.isEmpty, "\(flight.kind as DatagramKind?) from \(source)")
      }
    }
  }
  #expect(world.nodes[1].engine.counters.replayedInitiations == 2)
  #expect(world.nodes[1].engine.route(of: world.link(to: 0)) == LinkWorld.route(0))
  world.say("still", from: 0, to: 1)
  world.run(for: .seconds(1))
  #expect(world.heard(1) == ["once", "still"])
}

@Test func anInitiationForAnEarlierRunGetsNothing() {
  let world = LinkWorld.linked()
  let initiation = world.sent(0, .handshakeInitiation)[0].datagram
  var restarted = LinkWorld.engine(world.nodes[1].identity, boot: 55)
  let outputs = restarted.receive(initiation, from: LinkWorld.route(0), at: world.now)
  #expect(outputs.isEmpty)
  #expect(restarted.counters.wrongBoot == 1)
}

/// Each altered datagram is given to an engine in the state that expects the genuine one.
@Test func alteredAndTruncatedDatagramsGetNothing() {
  for cut in exchange() {
    let flight = cut.flight
    var genuine = cut.engine()
    let outputs = genuine.receive(flight.datagram, from: flight.from, at: flight.arrivesAt)
    #expect(!outputs.isEmpty)
    #expect(outputs == cut.outputs, "a twin does as the engine did")
    for position in flight.datagram.indices {
      for bit: UInt8 in [1, 0x80] {
        var altered = flight.datagram
        altered[position] ^= bit
        expectSilence(cut, altered, "byte \(position)")
      }
    }
    for length in flight.datagram.indices {
      expectSilence(cut, Array(flight.datagram[..<length]), "length \(length)")
    }
    expectSilence(cut, flight.datagram + [0], "one byte more")
  }
}

@Test func randomDatagramsGetNothing() {
  let world = LinkWorld.linked()
  var random = PRNG(seed: 11)
  let kinds = DatagramKind.allCases.map(\.rawValue)
  let lengths = [0, 1, 13, 28, 29, 61, 101, 193, 1200]
  let index = Array(world.sent(0, .data)[0].datagram[1..<5])
  for round in 0..<30_000 {
    var datagram = random.bytes(
      random.chance(0.5) ? lengths[random.below(lengths.count)] : random.below(300))
    if !datagram.isEmpty && random.chance(0.9) { datagram[0] = kinds[random.below(kinds.count)] }
    if datagram.count > 5 && random.chance(0.3) { datagram.replaceSubrange(1..<5, with: index) }
    let outputs = world.nodes[1].engine.receive(datagram, from: unknownRoute, at: world.now)
    guard outputs.isEmpty else {
      Issue.record("round \(round): \(outputs)")
      return
    }
  }
  world.say("still", from: 0, to: 1)
  world.run(for: .milliseconds(100))
  #expect(world.heard(1) == ["still"])
  #expect(world.states(1).count == 1)
}

/// An attacker with every public key, address and boot id, but not the channel key, gets no answer.
@Test func aWrongChannelKeyIsMetWithSilence() {
  let world = LinkWorld()
  let wrong = ChannelKey.fromName("another name")
  let attacker = LinkWorld.identity(666)
  var engine = LinkWorld.engine(attacker, boot: 3, key: wrong)
  for peer in 0...1 {
    let outputs = engine.connect(
      to: world.nodes[peer].id, bootID: world.nodes[peer].bootID, in: wrong.keyID,
      over: LinkWorld.route(peer), now: world.now)
    guard case .send(let initiation, _)? = outputs.first else {
      Issue.record("no initiation")
      continue
    }
    let answer = world.nodes[peer].engine.receive(initiation, from: unknownRoute, at: world.now)
    #expect(answer.isEmpty)
    #expect(world.nodes[peer].engine.counters.wrongMAC == 1)
  }
}

@Test func underAFloodACookieIsAskedForAndOpensTheDoor() {
  var configuration = LinkEngine.Configuration()
  configuration.handshakesPerSecondBeforeCookies = 2
  let world = LinkWorld(8, configuration)
  for node in 1..<8 { world.connect(node, to: 0) }
  world.run(for: .milliseconds(100))
  #expect(world.nodes[0].engine.counters.cookiesSent == 5)
  #expect(world.sent(0, .cookieReply).map(\.datagram.count) == [61, 61, 61, 61, 61])
  for node in 1..<8 { #expect(world.isUp(node, 0) && world.isUp(0, node)) }
}

@Test func aCookieIsWorthNothingFromAnotherAddress() {
  var configuration = LinkEngine.Configuration()
  configuration.handshakesPerSecondBeforeCookies = 1
  let world = LinkWorld(3, configuration)
  world.passes = { $0.to != LinkWorld.route(0) || $0.datagram.suffix(16).allSatisfy { $0 == 0 } }
  world.connect(1, to: 0)
  world.connect(2, to: 0)
  world.run(for: .milliseconds(100))
  let withCookie = world.nodes.flatMap(\.sent).filter {
    $0.kind == .handshakeInitiation && $0.datagram.suffix(16).contains { $0 != 0 }
  }
  guard let flight = withCookie.first else {
    Issue.record("no initiation with a cookie")
    return
  }
  var engine = world.nodes[0].twin()
  #expect(engine.receive(flight.datagram, from: unknownRoute, at: world.now).isEmpty)
  #expect(engine.counters.wrongCookie == 1)
  #expect(!engine.receive(flight.datagram, from: flight.from, at: world.now).isEmpty)
}

@Test func cookiesOutliveOneRotationOfTheSecretOnly() {
  var configuration = LinkEngine.Configuration()
  configuration.handshakesPerSecondBeforeCookies = 1
  let world = LinkWorld(3, configuration)
  world.passes = { $0.to != LinkWorld.route(0) || $0.datagram.suffix(16).allSatisfy { $0 == 0 } }
  world.connect(1, to: 0)
  world.connect(2, to: 0)
  world.run(for: .milliseconds(100))
  let flight = world.nodes.flatMap(\.sent).first {
    $0.kind == .handshakeInitiation && $0.datagram.suffix(16).contains { $0 != 0 }
  }
  guard let flight else {
    Issue.record("no initiation with a cookie")
    return
  }
  for (age, isTaken) in [(10, true), (119, true), (230, true), (300, false)] {
    var engine = world.nodes[0].twin()
    let outputs = engine.receive(
      flight.datagram, from: flight.from, at: world.now + .seconds(age))
    #expect(!outputs.isEmpty == isTaken, "after \(age) s")
  }
}

/// A datagram of an exchange, and the state in which it is received.
private struct Cut {
  let flight: LinkWorld.Flight
  /// Makes the engine that is about to receive it.
  let engine: () -> LinkEngine
  /// The outputs of that engine for it.
  let outputs: [LinkEngine.Output]
}

/// Records a complete exchange, with the state before each datagram is received.
private func exchange() -> [Cut] {
  var configuration = LinkEngine.Configuration()
  configuration.handshakesPerSecondBeforeCookies = 1
  let world = LinkWorld(3, configuration)
  var cuts: [Cut] = []
  func step(_ kind: DatagramKind, from sender: Int, to receiver: Int) {
    guard let flight = world.nodes[sender].sent.last(where: { $0.kind == kind }) else {
      Issue.record("no \(kind)")
      return
    }
    world.now = flight.arrivesAt
    let engine = world.nodes[receiver].twins()
    cuts.append(Cut(flight: flight, engine: engine, outputs: world.receive(receiver, flight)))
  }
  world.passes = { _ in false }
  world.connect(2, to: 0)
  step(.handshakeInitiation, from: 2, to: 0)
  world.connect(1, to: 0)
  step(.handshakeInitiation, from: 1, to: 0)  // answered with a cookie
  step(.cookieReply, from: 0, to: 1)
  step(.handshakeInitiation, from: 1, to: 0)  // retried with the cookie
  step(.handshakeResponse, from: 0, to: 1)
  step(.data, from: 1, to: 0)
  world.say("hello", from: 1, to: 0)
  step(.data, from: 1, to: 0)
  #expect(world.heard(0) == ["hello"])
  #expect(cuts.count == 7)
  return cuts
}

private func expectSilence(_ cut: Cut, _ datagram: [UInt8], _ what: String) {
  let flight = cut.flight
  var engine = cut.engine()
  let (links, deadline) = (engine.establishedLinks, engine.deadline)
  let outputs = engine.receive(datagram, from: flight.from, at: flight.arrivesAt)
  // Under a flood, a cookie reply requires a valid first MAC, which covers all bytes but the second
  // MAC.
  #expect(outputs.isEmpty, "\(String(describing: flight.kind)), \(what)")
  #expect(engine.establishedLinks == links)
  #expect(engine.deadline == deadline)
  let genuine = engine.receive(flight.datagram, from: flight.from, at: flight.arrivesAt)
  #expect(!genuine.isEmpty, "\(String(describing: flight.kind)) after \(what)")
}

/// A relaying member knows the channel key and the ids of both ends, and cannot open the datagrams.
@Test func aRelayCanOpenNothing() {
  let world = LinkWorld(3)
  for (node, peer) in [(0, 1), (0, 2), (1, 2)] { world.connect(node, to: peer) }
  world.run(for: .seconds(1))
  let before = world.nodes[0].sent.count
  for number in 0..<20 { world.say("secret \(number)", from: 0, to: 2) }
  world.run(for: .seconds(1))
  #expect(world.heard(2).count == 20)
  let passed = world.nodes[0].sent[before...].filter { $0.to == LinkWorld.route(2) }
  #expect(passed.count >= 20)
  for flight in passed {
    let outputs = world.nodes[1].engine.receive(flight.datagram, from: flight.from, at: world.now)
    #expect(outputs.isEmpty)
    let text = String(decoding: flight.datagram, as: UTF8.self)
    #expect(!text.contains("secret"))
    let id = LinkWorld.key.keyID.hash.bytes
    #expect(!flight.datagram.indices.contains { flight.datagram[$0...].starts(with: id) })
  }
  #expect(world.heard(1).isEmpty)
}
