import MusterBase
import MusterCore
import MusterCrypto
import MusterLink
import MusterMesh
import MusterWire

/// The simulator's half of what a shell does, on hosts that have networks of their own.
extension ReachSimulation {
  mutating func handle(_ event: Event) {
    switch event {
    case .start(let place): start(place)
    case .change: change()
    case .restart(let place): if !isCalm { start(place) }
    case .mend(let one, let other): if !isCalm { mend(one, other) }
    case .revive(let number): if !isCalm { revive(number) }
    case .notice(let place): notice(place)
    case .sound(let place, let run): takeSound(place, run: run)
    case .check: check()
    case .calm: calm()
    }
  }

  mutating func deliver(_ arrived: Internet.Delivery) {
    guard violation == nil else { return }
    timeline.delivered(arrived.datagram, from: Int(arrived.from.port), to: arrived.host, at: now)
    guard arrived.host < nodes.count else {
      serve(arrived)
      return
    }
    let outputs = nodes[arrived.host].call(at: now) {
      $0.receive(arrived.datagram, from: arrived.from, at: $1)
    }
    perform(spoilt(outputs, after: arrived), of: arrived.host)
  }

  private mutating func serve(_ arrived: Internet.Delivery) {
    let number = arrived.host - nodes.count
    let outputs = rendezvous[number].server?.receive(
      arrived.datagram, from: arrived.from, seconds: WallTime.seconds(now), at: now)
    for case .send(let datagram, let address) in outputs ?? [] {
      if let fault = plaintext.sent(datagram) { violated("plaintext", "a rendezvous: \(fault)") }
      if options.flaw == .recordsAreLost, DatagramKind(of: datagram) == .rendezvousRecords {
        continue
      }
      internet.send(datagram, from: arrived.host, to: address, at: now)
    }
  }

  /// What is left of what a node does with a datagram on a host that is broken.
  private func spoilt(
    _ outputs: [Node.Output], after arrived: Internet.Delivery
  ) -> [Node.Output] {
    guard options.flaw == .forwardsAreLost, DatagramKind(of: arrived.datagram) == .data else {
      return outputs
    }
    // What is passed on is as long as it came, and goes to somebody else.
    return outputs.filter { output in
      guard case .send(let datagram, let address) = output else { return true }
      return datagram.count != arrived.datagram.count || address == arrived.from
    }
  }

  /// Hands a node an input and carries out what it asks for.
  mutating func input(_ place: Int, _ body: (inout Node, Instant) -> [Node.Output]) {
    perform(nodes[place].call(at: now, body), of: place)
  }

  mutating func perform(_ outputs: [Node.Output], of place: Int) {
    for output in outputs {
      switch output {
      case .send(let datagram, let address): send(datagram, from: place, to: address)
      case .broadcast(let datagram):
        check(datagram, from: place)
        if options.flaw == .broadcastsAreLost { continue }
        internet.broadcast(datagram, from: place, at: now)
      case .event(let event, in: _): observe(event, of: place)
      case .play(let audio, let link): play(audio, of: link, at: place)
      case .keep(let entry, let id, in: _): nodes[place].disk.keep(entry, id: id)
      case .forget(let ids, in: _): nodes[place].disk.forget(ids)
      case .shown(let id, in: _): nodes[place].disk.shown(id)
      case .keepKey(let key, in: _): nodes[place].disk.keep(key)
      case .encode, .encodeKeyframe, .show, .mediaEnded: break
      }
    }
  }

  // MARK: Onto the wire

  private mutating func send(_ datagram: [UInt8], from place: Int, to address: Address) {
    check(datagram, from: place)
    checkReceiver(of: datagram, from: place, address)
    if options.flaw == .knocksAreLost, DatagramKind(of: datagram) == .announce { return }
    internet.send(datagram, from: place, to: address, at: now)
  }

  private mutating func check(_ datagram: [UInt8], from place: Int) {
    let label = nodes[place].label
    if let fault = nonces.sent(datagram) { violated("nonces", "\(label): \(fault)") }
    if let fault = plaintext.sent(datagram) { violated("plaintext", "\(label): \(fault)") }
    if let fault = bounds.sent(datagram) { violated("bounds", "\(label): \(fault)") }
  }

  /// Questions to rendezvous are for those only, and nothing of a link is for one that is no
  /// member.
  private mutating func checkReceiver(
    of datagram: [UInt8], from place: Int, _ address: Address
  ) {
    let isServer = rendezvous.contains { $0.address == address }
    let isFit: Bool
    switch DatagramKind(of: datagram) {
    case .rendezvousHello, .rendezvousRegistration:
      isFit = isServer || scenario.offering.map { nodes[$0].address == address } ?? false
    case .handshakeInitiation, .handshakeResponse, .cookieReply, .data: isFit = !isServer
    case .announce, .challenge: isFit = true
    case .rendezvousCookie, .rendezvousRecords: isFit = place == scenario.offering
    case nil: isFit = false
    }
    let kind = Hex.encode(datagram.prefix(1))
    if !isFit { violated("silence", "\(nodes[place].label) sends kind \(kind) to \(address)") }
  }

  // MARK: Processes

  /// A process begins, with the addresses that its host has now.
  mutating func start(_ place: Int) {
    guard nodes[place].node == nil else { return }
    nodes[place].run += 1
    let run = nodes[place].run
    nodes[place].source = SyntheticSource(
      sender: UInt8(place), run: UInt8(truncatingIfNeeded: run), layers: 0)
    var configuration = Node.Configuration()
    configuration.name = nodes[place].name
    configuration.offersRendezvous = place == scenario.offering
    nodes[place].node = Node(
      identity: nodes[place].identity, entropy: .seeded(prng.next()), seed: prng.next(),
      configuration: configuration)
    nodes[place].isInChannel = true
    nodes[place].address = internet.address(of: place)
    note(nodes[place].label, "starts, run \(run), at \(nodes[place].address)")
    let own = nodes[place].address
    let wall = WallTime.seconds(now) * 1000
    input(place) { node, clock in
      node.setWallClock(millisecondsSince1970: wall, at: clock)
      return []
    }
    input(place) { $0.setOwnAddresses([own], at: $1) }
    input(place) { $0.setSources(layers: [], isPattern: false, hasAudio: true, at: $1) }
    let servers = rendezvousAddresses(for: place)
    input(place) { $0.setRendezvous(servers, at: $1) }
    let setup = ChannelSetup(
      name: "\(Marker.text)-reach", keys: [nodes[place].firstKey], genesis: nil,
      entries: nodes[place].disk.signedEntries, ticket: nil)
    let wantsCall = nodes[place].wantsCall
    input(place) { $0.join(setup, call: wantsCall, at: $1) }
    schedule(.sound(place, run: run), in: prng.duration(.zero, Self.soundInterval))
  }

  private func rendezvousAddresses(for place: Int) -> [Address] {
    let member = scenario.offering.flatMap { $0 == place ? nil : nodes[$0].address }
    return rendezvous.map(\.address) + [member].compactMap { $0 }
  }

  /// The kernel has told the shell, which says so even where the address looks the same.
  private mutating func notice(_ place: Int) {
    guard nodes[place].node != nil else { return }
    let own = nodes[place].address
    input(place) { $0.setOwnAddresses([own], at: $1) }
    input(place) { $0.pathsChanged(at: $1) }
  }

  // MARK: What is seen and heard

  private mutating func observe(_ event: NodeEvent, of place: Int) {
    let label = nodes[place].label
    switch event {
    case .linkUp(let peer, let address, let relay):
      linksMade += 1
      let way = address.map { "at \($0)" } ?? "via \(relay.map { self.label($0) } ?? "nobody")"
      note(label, "link \(self.label(peer)) \(way)")
    case .linkDown(let peer, let reason):
      note(label, "link \(self.label(peer)) down: \(reason.rawValue)")
    case .channel(.memberJoined(let member)): note(label, "member \(self.label(member.id))")
    case .channel(.memberLeft(let member, let reason)):
      note(label, "member \(self.label(member.id)) \(reason.rawValue)")
    case .channel(.callStarted(let call)), .channel(.callHandedOver(let call)):
      note(label, "call of \(self.label(call.info.initiator)), term \(call.info.term)")
    case .channel(.callJoined(_, let who)): note(label, "\(self.label(who)) joins the call")
    case .channel(.callLeft(_, let who, let reason)):
      note(label, "\(self.label(who)) out of the call: \(reason.rawValue)")
    case .channel(.callEnded): note(label, "call over")
    default: break
    }
  }

  func label(_ id: NodeID) -> String { owners[id].map { nodes[$0].label } ?? id.short }

  /// Silence, so that nobody counts as speaking, in packets that say whose they are.
  private mutating func takeSound(_ place: Int, run: Int) {
    guard nodes[place].run == run, nodes[place].node != nil else { return }
    schedule(.sound(place, run: run), in: Self.soundInterval)
    let clock = nodes[place].local(now)
    let audio = nodes[place].source.audio(capturedAt: clock, level: 127)
    input(place) { $0.sendAudio(audio, at: $1) }
  }

  private mutating func play(_ audio: ReceivedAudio, of link: LinkID, at place: Int) {
    audioPackets += 1
    guard let sender = owners[link.peer] else {
      violated("delivery", "\(nodes[place].label) plays a stranger")
      return
    }
    heardAt[place * nodes.count + sender] = now
    if let fault = delivery.played(audio.payload, from: sender, at: place) {
      violated("delivery", fault)
    }
  }
}
