import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterDiscovery
import MusterLink
import MusterWire

/// The interpreter of node outputs for hosts on separate home networks.
extension ReachSimulation {
  mutating func handle(_ event: Event) {
    switch event {
    case .start(let index): start(index)
    case .change: change()
    case .restart(let index): if !isHealed { start(index) }
    case .mend(let one, let other): if !isHealed { mend(one, other) }
    case .revive(let number): if !isHealed { revive(number) }
    case .notice(let index): notice(index)
    case .assignV6(let index): assignV6(to: index)
    case .removeV6(let index): if !isHealed { removeV6(of: index) }
    case .audio(let index, let run): takeAudio(index, run: run)
    case .check: check()
    case .heal: heal()
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
      network.send(datagram, from: arrived.host, to: address, at: now)
    }
  }

  /// The outputs that a host executes: all, or with `forwardsAreLost` all except relayed datagrams.
  private func spoilt(
    _ outputs: [Node.Output], after arrived: Internet.Delivery
  ) -> [Node.Output] {
    guard options.flaw == .forwardsAreLost, DatagramKind(of: arrived.datagram) == .data else {
      return outputs
    }
    // A relayed datagram keeps its length and goes to another address.
    return outputs.filter { output in
      guard case .send(let datagram, let address, _) = output else { return true }
      return datagram.count != arrived.datagram.count || address == arrived.from
    }
  }

  mutating func perform(_ outputs: [Node.Output], of index: Int) {
    var writes = NodeWrites()
    for output in outputs {
      switch output {
      case .write, .commit: writes.take(output)
      case .send(let datagram, let address, _): send(datagram, from: index, to: address)
      case .broadcast(let datagram):
        check(datagram, from: index)
        if options.flaw == .broadcastsAreLost { continue }
        network.broadcast(datagram, from: index, at: now)
      case .event(let event, in: _): observe(event, of: index)
      case .encodeLongPackets(let areNeeded): nodes[index].source.encodeLongPackets(areNeeded)
      case .play(let audio, let link): play(audio, of: link, at: index)
      case .encode, .encodeKeyframe, .show, .mediaEnded: break
      }
    }
    submit(writes, of: index)
  }

  // MARK: Datagrams

  private mutating func send(_ datagram: [UInt8], from index: Int, to address: Address) {
    check(datagram, from: index)
    checkReceiver(of: datagram, from: index, address)
    if options.flaw == .candidateProbesAreLost, DatagramKind(of: datagram) == .announcement {
      return
    }
    network.send(datagram, from: index, to: address, at: now)
  }

  private mutating func check(_ datagram: [UInt8], from index: Int) {
    let label = nodes[index].label
    if let fault = nonces.sent(datagram) { violated("nonces", "\(label): \(fault)") }
    if let fault = plaintext.sent(datagram) { violated("plaintext", "\(label): \(fault)") }
    if let fault = bounds.sent(datagram) { violated("bounds", "\(label): \(fault)") }
  }

  /// Checks that rendezvous requests go only to rendezvous servers, and that no datagram of a link
  /// goes to a server that is not a member.
  private mutating func checkReceiver(
    of datagram: [UInt8], from index: Int, _ address: Address
  ) {
    let isServer = rendezvous.contains { $0.address == address }
    let isFit: Bool
    switch DatagramKind(of: datagram) {
    case .rendezvousHello, .rendezvousRegistration:
      isFit = isServer || scenario.offering.map { nodes[$0].address == address } ?? false
    case .handshakeInitiation, .handshakeResponse, .cookieReply, .data: isFit = !isServer
    case .announcement, .challenge: isFit = true
    case .rendezvousCookie, .rendezvousRecords: isFit = index == scenario.offering
    case nil: isFit = false
    }
    let kind = Hex.encode(datagram.prefix(1))
    if !isFit { violated("silence", "\(nodes[index].label) sends kind \(kind) to \(address)") }
  }

  // MARK: Processes

  /// Starts a process with the current addresses of its host.
  mutating func start(_ index: Int) {
    guard nodes[index].process == nil else { return }
    nodes[index].run += 1
    let run = nodes[index].run
    nodes[index].source = SyntheticSource(
      sender: UInt8(index), run: UInt8(truncatingIfNeeded: run), layers: 0)
    let servers = rendezvousAddresses(for: index)
    var configuration = Node.Configuration()
    configuration.name = nodes[index].name
    configuration.offersRendezvous = index == scenario.offering
    nodes[index].process = Process(
      Node(
        identity: nodes[index].identity, entropy: .seeded(prng.next()), seed: prng.next(),
        configuration: configuration))
    nodes[index].isInChannel = true
    nodes[index].address = network.address(of: index)
    note(nodes[index].label, "starts, run \(run), at \(nodes[index].address)")
    steadiness.changed(at: now)
    let own = network.addresses(of: index)
    let wall = WallTime.seconds(now) * 1000
    input(index) { node, clock in
      node.setWallClock(millisecondsSince1970: wall, at: clock)
      node.setFinders(rendezvousServers: servers.count, peers: false, dht: false)
      return []
    }
    input(index) { $0.setOwnAddresses(own, at: $1) }
    input(index) { $0.setSources([], hasAudio: true, at: $1) }
    input(index) { $0.setRendezvous(servers.map { Contact($0) }, at: $1) }
    let setup = ChannelSetup(
      name: "\(Marker.text)-reach", keys: [nodes[index].firstKey], genesis: nil,
      entries: nodes[index].disk.signedEntries, credential: nil)
    let wantsCall = nodes[index].wantsCall
    input(index) { $0.join(setup, call: wantsCall, at: $1) }
    schedule(.audio(index, run: run), in: prng.duration(.zero, Self.audioInterval))
  }

  private func rendezvousAddresses(for index: Int) -> [Address] {
    let member = scenario.offering.flatMap { $0 == index ? nil : nodes[$0].address }
    return rendezvous.map(\.address) + [member].compactMap { $0 }
  }

  /// Notifies a node that the interfaces of its host have changed, as the shell does after a notice
  /// from the kernel, even if the addresses stay the same.
  private mutating func notice(_ index: Int) {
    guard nodes[index].process != nil else { return }
    steadiness.changed(at: now)
    let own = network.addresses(of: index)
    input(index) { $0.setOwnAddresses(own, at: $1) }
    input(index) { $0.pathsChanged(at: $1) }
  }

  // MARK: Events and audio

  private mutating func observe(_ event: NodeEvent, of index: Int) {
    let label = nodes[index].label
    switch event {
    case .linkUp(let peer, let address, let relay):
      linksMade += 1
      let route = address.map { "at \($0)" } ?? "via \(relay.map { self.label($0) } ?? "nobody")"
      note(label, "link \(self.label(peer)) \(route)")
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

  /// Sends a packet with a token of its sender at level 127 (silence, RFC 6464), at which no member
  /// counts as speaking.
  private mutating func takeAudio(_ index: Int, run: Int) {
    guard nodes[index].run == run, nodes[index].process != nil else { return }
    schedule(.audio(index, run: run), in: Self.audioInterval)
    let clock = nodes[index].local(now)
    let audio = nodes[index].source.audio(capturedAt: clock, level: 127)
    input(index) { $0.sendAudio(audio, at: $1) }
  }

  private mutating func play(_ audio: ReceivedAudio, of link: LinkID, at index: Int) {
    audioPackets += 1
    guard let sender = owners[link.peer] else {
      violated("delivery", "\(nodes[index].label) plays an outsider")
      return
    }
    heardAt[index * nodes.count + sender] = now
    if let fault = delivery.played(audio.payload, from: sender, at: index) {
      violated("delivery", fault)
    }
  }
}
