import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterDiscovery
import MusterWire

/// The simulator's half of what a shell does: it carries out what nodes ask for.
extension Simulation {
  mutating func deliver(_ arrived: Network.Delivery) {
    guard violation == nil, let receiver = index(of: arrived.to) else { return }
    let sender = index(of: arrived.from)
    timeline.delivered(arrived.datagram, from: sender ?? 255, to: receiver, at: now)
    totals.bytes += UInt64(arrived.datagram.count)
    guard nodes[receiver].node != nil else { return }
    input(receiver) { $0.receive(arrived.datagram, from: arrived.from, at: $1) }
    // Only what its receiver could have acted on, with the key that it was sent under, can be a
    // replay.
    guard plan.isOn(.attack), sender != nil, nodes[receiver].isInChannel,
      nodes[receiver].node?.epoch(of: channel.id) ?? 0 >= roles.epoch
    else { return }
    attacker.hear(
      .init(datagram: arrived.datagram, from: arrived.from, to: arrived.to))
  }

  /// Hands a node an input and carries out what it asks for.
  mutating func input(_ index: Int, _ body: (inout Node, Instant) -> [Node.Output]) {
    perform(nodes[index].call(at: now, body), of: index)
  }

  /// Gives a node a command; nil, and a line of the timeline, when it refuses.
  mutating func command(
    _ index: Int,
    _ body: (inout Node, Instant) throws(CommandRefusal) -> [Node.Output]
  ) -> [Node.Output]? {
    var refusal: CommandRefusal?
    let outputs = nodes[index].call(at: now) { node, clock in
      do throws(CommandRefusal) {
        return try body(&node, clock)
      } catch {
        refusal = error
        return []
      }
    }
    if let refusal { note(nodes[index].label, "may not: \(refusal)") }
    return refusal == nil ? outputs : nil
  }

  mutating func perform(_ outputs: [Node.Output], of index: Int) {
    for output in outputs {
      switch output {
      case .send(let datagram, let address): send(datagram, from: index, to: address)
      case .broadcast(let datagram): broadcast(datagram, from: index)
      case .event(let event, in: _): observe(event, of: index)
      case .encode(let stream, let layers): nodes[index].source.encode(layers, of: stream)
      case .encodeKeyframe(let stream, let layer):
        nodes[index].source.requestKeyframe(layer, of: stream)
      case .show(let frame, let link, let stream, let delay):
        show(frame, of: stream, link, at: index, after: delay)
      case .play(let audio, let link): play(audio, of: link, at: index)
      case .mediaEnded(let link, let stream): mediaEnded(link, stream, at: index)
      case .keep(let entry, let id, in: _): keep(entry, id, at: index)
      case .forget(let ids, in: _): nodes[index].disk.forget(ids)
      case .shown(let id, in: _): nodes[index].disk.shown(id)
      case .keepKey(let key, in: _):
        nodes[index].disk.keep(key)
        plaintext.add(key: key.key)
      }
    }
    trace.sample(nodes[index], in: channel.id, at: now)
  }

  // MARK: Onto the wire

  private mutating func send(_ datagram: [UInt8], from index: Int, to address: Address) {
    check(datagram, from: index)
    if let fault = silence.sent(datagram, to: address) {
      violated("silence", "\(nodes[index].label): \(fault)")
    }
    network.send(datagram, from: nodes[index].address, to: address, at: now)
  }

  private mutating func broadcast(_ datagram: [UInt8], from index: Int) {
    check(datagram, from: index)
    guard scenario.usesBroadcast else { return }
    network.broadcast(datagram, from: nodes[index].address, at: now)
  }

  private mutating func check(_ datagram: [UInt8], from index: Int) {
    if let fault = nonces.sent(datagram) { violated("nonces", "\(nodes[index].label): \(fault)") }
    if let fault = plaintext.sent(datagram) {
      violated("plaintext", "\(nodes[index].label): \(fault)")
    }
    if let fault = bounds.sent(datagram) { violated("bounds", "\(nodes[index].label): \(fault)") }
  }

  // MARK: Onto the disk

  /// Writes an entry down, and tells the checkers what the host knows from now on.
  mutating func keep(_ bytes: [UInt8], _ id: EntryID, at index: Int) {
    nodes[index].disk.keep(bytes, id: id)
    guard let entry = try? Entry(decoding: bytes.dropLast(Entry.signatureBytes)) else {
      violated("disk", "\(nodes[index].label) keeps what is no entry")
      return
    }
    let author = entry.author
    let isOwn = author == nodes[index].identity.id
    if isOwn { bounds.entries += 1 }
    switch entry.body {
    case .claim(let claim):
      calls.learnt(
        claim: CallChecker.Word(call: claim.call, term: claim.term, author: author), at: index)
    case .end(let end):
      calls.learnt(
        end: CallChecker.Word(call: end.call, term: end.term, author: author), at: index)
    case .message:
      let isProven = nodes[index].node?.may(.sendText, author, in: channel.id) ?? true
      messages.kept(id, at: nodes[index].reader, isUnproven: !isProven, at: now)
    case .redemption: if isOwn { nodes[index].disk.holdsRedemption = true }
    case .grant(let grant):
      guard isOwn, !grant.isBearer, isOwner(index) else { break }
      totals.grants += 1
      roles.granted(
        grant.role, to: grant.subject, expiresAt: grant.expiresAt,
        order: RoleChecker.Order(lamport: entry.lamport, author: author))
    case .presence, .neighbourReport:
      violated("disk", "\(nodes[index].label) keeps what does not last")
    case .epoch(let change):
      guard isOwn, index == 0 else { break }
      roles.shutOut(
        change.removed, order: RoleChecker.Order(lamport: entry.lamport, author: author))
    case .unknown: break
    }
  }

  /// Whether what the place's node says of roles counts.
  func isOwner(_ index: Int) -> Bool {
    scenario.kind == .created && (index == 0 || index == scenario.coOwner)
  }

  // MARK: Who is who

  mutating func adopt(_ identity: Identity, by index: Int) {
    nodes[index].identity = identity
    owners[identity.id] = index
    plaintext.add(identity.id)
    bounds.identities += 1
  }

  func index(of address: Address) -> Int? {
    guard case .v4(let ip) = address.host, ip >= Self.firstHost else { return nil }
    let index = Int(ip - Self.firstHost)
    return index < nodes.count ? index : nil
  }

  /// The place whose node has this identity now.
  func present(_ id: NodeID) -> Int? {
    owners[id].flatMap { nodes[$0].identity.id == id ? $0 : nil }
  }

  func label(_ id: NodeID) -> String {
    guard let index = owners[id] else { return id.short }
    return nodes[index].identity.id == id ? nodes[index].label : "\(nodes[index].label)'"
  }
}
