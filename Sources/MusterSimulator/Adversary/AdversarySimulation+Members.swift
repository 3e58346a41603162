import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterDiscovery
import MusterWire

/// The members in good standing, and what their users do.
extension AdversarySimulation {
  mutating func handle(_ event: Event) {
    switch event {
    case .start(let index): start(index)
    case .attack: attack()
    case .introduce: introduce()
    case .flood: flood()
    case .write(let index): write(index)
    case .crash(let index): crash(index)
    case .restart(let index): start(index)
    case .endCall: endCall()
    case .remove: remove()
    case .check: check()
    case .end: end()
    }
  }

  /// Starts a process that joins the channel and its call.
  private mutating func start(_ index: Int) {
    nodes[index].run += 1
    note(nodes[index].label, "starts, run \(nodes[index].run)")
    var configuration = Node.Configuration()
    configuration.name = nodes[index].name
    configuration.policy = options.weakness?.policy ?? .standard
    nodes[index].process = Process(
      Node(
        identity: nodes[index].identity, entropy: .seeded(prng.next()), seed: prng.next(),
        configuration: configuration))
    nodes[index].isInChannel = true
    let own = nodes[index].address
    let others = nodes.map(\.address).filter { $0 != own }
    let wall = WallTime.seconds(now) * 1000
    input(index) { node, clock in
      node.setWallClock(millisecondsSince1970: wall, at: clock)
      node.setFinders(rendezvousServers: 0, peers: true, dht: false)
      return []
    }
    input(index) { $0.setOwnAddresses([own], at: $1) }
    input(index) { $0.setSources([], hasAudio: true, at: $1) }
    let setup = nodes[index].setup(of: channel)
    input(index) { $0.join(setup, call: true, at: $1) }
    input(index) { $0.setPeers(others.map { Contact($0) }, at: $1) }
  }

  private mutating func crash(_ index: Int) {
    note(nodes[index].label, "crashes")
    _ = nodes[index].stop()
    promises.crashed(index)
    promises.exempt([index], until: now + .seconds(6))
    schedule(.restart(index), in: .seconds(1))
  }

  /// Writes a message, and asks to enter the call if the node is not in it.
  private mutating func write(_ index: Int) {
    schedule(.write(index), in: prng.duration(Self.writingInterval, Self.writingInterval * 2))
    guard let process = nodes[index].process else { return }
    let (id, number) = (channel.id, promises.messageCount)
    let text = "\(Marker.text) says \(number)"
    let readers = nodes.indices.filter {
      nodes[$0].process != nil && process.node.member(nodes[$0].identity.id, of: id) != nil
    }
    note(nodes[index].label, "says \(number)")
    promises.wrote(text, by: index, for: readers, at: now)
    command(index, "writes") { (node, clock) throws(CommandRefusal) in
      try node.say(text, to: nil, in: id, at: clock)
    }
    guard !process.node.isInCall(id), process.node.callState(in: id) == .disconnected else {
      return
    }
    let mayStart = process.node.call(in: id) != nil || scenario.roles[index] >= .presenter
    guard mayStart else { return }
    note(nodes[index].label, "wants into the call")
    command(index, "enters a call") { (node, clock) throws(CommandRefusal) in
      try node.startCall(in: id, at: clock)
    }
  }

  /// Lets the initiator end the call for all.
  private mutating func endCall() {
    let id = channel.id
    let ids = nodes.map(\.identity.id)
    let initiator = nodes[0].process?.node.call(in: id)?.info.initiator
    guard let index = ids.firstIndex(where: { $0 == initiator }) else { return }
    note(nodes[index].label, "ends the call")
    promises.exempt(nodes.indices, until: now + .seconds(3))
    input(index) { $0.leaveCall(in: id, at: $1) }
  }

  /// Lets the owner remove all who came by the invite of a key of the adversary that it sees.
  private mutating func remove() {
    guard let process = nodes[0].process else { return }
    let id = channel.id
    let seen = process.node.members(of: id).map(\.id).first { !adversary.members.contains($0) }
    guard let seen, let invite = process.node.rights(in: id)?.invite(of: seen) else { return }
    note(nodes[0].label, "removes the adversary's invite")
    removedAt = now
    command(0, "removes an invite") { (node, clock) throws(CommandRefusal) in
      try node.revoke(invite, in: id, at: clock)
    }
  }

  // MARK: Inputs and outputs

  mutating func deliver(_ arrived: Network.Delivery) {
    guard violation == nil, let receiver = host(of: arrived.to) else { return }
    timeline.delivered(
      arrived.datagram, from: host(of: arrived.from) ?? 255, to: receiver, at: now)
    guard receiver < nodes.count else {
      let number = receiver - nodes.count
      bytesReceived += arrived.datagram.count
      perform(peers[number].receive(arrived.datagram, from: arrived.from, at: now), of: number)
      return
    }
    record(arrived)
    input(receiver) { $0.receive(arrived.datagram, from: arrived.from, at: $1) }
  }

  private func host(of address: Address) -> Int? {
    guard case .v4(let ip) = address.host, ip >= Simulation.firstHost else { return nil }
    let index = Int(ip - Simulation.firstHost)
    return index < nodes.count + peers.count ? index : nil
  }

  /// Gives a command to a member's node, which must not refuse it.
  private mutating func command(
    _ index: Int, _ what: String,
    _ body: (inout Node, Instant) throws(CommandRefusal) -> [Node.Output]
  ) {
    switch nodes[index].command(at: now, body) {
    case .success(let outputs): perform(outputs, of: index)
    case .failure(let refusal):
      violated("promise", "\(nodes[index].label) \(what), refused: \(refusal)")
    }
  }

  mutating func perform(_ outputs: [Node.Output], of index: Int) {
    noteRoles(at: index)
    var writes = NodeWrites()
    for output in outputs {
      switch output {
      case .write, .commit: writes.take(output)
      case .send(let datagram, let address, _):
        network.send(datagram, from: nodes[index].address, to: address, at: now)
      case .event(let event, in: _): observe(event, of: index)
      case .broadcast, .encodeLongPackets, .play, .encode, .encodeKeyframe, .show, .mediaEnded:
        break
      }
    }
    submit(writes, of: index)
  }

  private mutating func observe(_ event: NodeEvent, of index: Int) {
    let label = nodes[index].label
    guard case .channel(let event) = event else { return }
    switch event {
    case .message(let message): promises.shown(message.text, at: index)
    case .refused(let reason): violated("promise", "\(label) is refused: \(reason)")
    case .memberLeft(let member, let reason):
      note(label, "member \(self.label(member.id)) left: \(reason.rawValue)")
    case .callStarted(let call):
      note(label, "call of \(self.label(call.info.initiator)), term \(call.info.term)")
    case .callEnded(let call, let reason):
      note(label, "call of \(self.label(call.initiator)) over: \(reason)")
      if reason == CallEndReason.merged { checkMove(of: index) }
    case .ownRoleChanged(let role): note(label, "is \(role.name)")
    case .commitFailed, .notKept: violated("promise", "\(label) loses what it has written")
    default: break
    }
  }

  private func label(_ member: NodeID) -> String {
    nodes.first { $0.identity.id == member }?.label ?? "a key of the adversary"
  }
}
