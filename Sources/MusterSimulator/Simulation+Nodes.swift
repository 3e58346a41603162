import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterDiscovery
import MusterWire

/// The interpreter of node outputs: the simulator's counterpart of `MusterNode.perform`.
extension Simulation {
  mutating func deliver(_ arrived: Network.Delivery) {
    guard violation == nil, let receiver = index(of: arrived.to) else { return }
    let sender = index(of: arrived.from)
    timeline.delivered(arrived.datagram, from: sender ?? 255, to: receiver, at: now)
    totals.bytes += UInt64(arrived.datagram.count)
    guard nodes[receiver].process != nil else { return }
    input(receiver) { $0.receive(arrived.datagram, from: arrived.from, at: $1) }
    // The attacker records a datagram only if the receiver was in the channel with the current key
    // and could accept the datagram; otherwise a second copy would not be a replay.
    guard plan.isOn(.attack), sender != nil, nodes[receiver].isInChannel,
      nodes[receiver].process?.node.epoch(of: channel.id) ?? 0 >= roles.epoch
    else { return }
    attacker.hear(
      .init(datagram: arrived.datagram, from: arrived.from, to: arrived.to))
  }

  /// Gives a command to a node. If the node refuses, notes the refusal in the timeline and returns
  /// nil.
  mutating func command(
    _ index: Int,
    _ body: (inout Node, Instant) throws(CommandRefusal) -> [Node.Output]
  ) -> [Node.Output]? {
    switch nodes[index].command(at: now, body) {
    case .success(let outputs): return outputs
    case .failure(let refusal):
      note(nodes[index].label, "may not: \(refusal)")
      return nil
    }
  }

  mutating func perform(_ outputs: [Node.Output], of index: Int) {
    var writes = NodeWrites()
    var concernsCall = false
    for output in outputs {
      switch output {
      case .write, .commit, .event(.channel(.message), in: _): writes.take(output)
      case .send(let datagram, let address, _): send(datagram, from: index, to: address)
      case .broadcast(let datagram): broadcast(datagram, from: index)
      case .event(let event, in: _):
        observe(event, of: index)
        if case .channel(let event) = event { concernsCall = concernsCall || event.concernsCall }
      case .encodeLongPackets(let areNeeded): nodes[index].source.encodeLongPackets(areNeeded)
      case .encode(let stream, let targets):
        nodes[index].source.encode(targets.map(\.layer), of: stream)
      case .encodeKeyframe(let stream, let layer):
        nodes[index].source.requestKeyframe(layer, of: stream)
      case .show(let frame, let link, let stream): show(frame, of: stream, link, at: index)
      case .play(let audio, let link): play(audio, of: link, at: index)
      case .mediaEnded(let link, let stream): mediaEnded(link, stream, at: index)
      }
    }
    write(writes, of: index)
    if concernsCall { observeCall(of: index) }
    trace.sample(nodes[index], in: channel.id, at: now)
  }

  // MARK: Datagrams

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

  // MARK: Disk writes

  private mutating func write(_ writes: NodeWrites, of index: Int) {
    for change in writes.allChanges { checkWrite(change, by: index) }
    submit(writes, of: index, writers: writers(at: index))
    guard options.bug == .sendsBeforeWritten else { return }
    for commit in writes.commits {
      perform(nodes[index].finish(commit.id, isDurable: true, at: now), of: index)
    }
  }

  /// Checks that a node writes only persistent entries, and that entries which must be durable were
  /// written by their authors first.
  private mutating func checkWrite(_ change: Node.Change, by index: Int) {
    if case .key(let key) = change { plaintext.add(key: key.key) }
    if case .forget(let ids) = change { noteDropped(ids, by: index) }
    guard case .entry(let bytes, let id) = change else { return }
    let label = nodes[index].label
    guard let entry = try? Entry(decoding: bytes.dropLast(Entry.signatureBytes)) else {
      violated("disk", "\(label) keeps what is no entry")
      return
    }
    switch entry.body {
    case .presence, .neighbourReport: violated("disk", "\(label) keeps what does not last")
    default: break
    }
    if entry.author == nodes[index].identity.id {
      bounds.entries += 1
      if let fault = standings.signed(entry.body, id, by: entry.author, at: index, now) {
        violated("standing", "\(label) \(fault)")
      }
    } else if let fault = commits.heard(id, of: entry.body.kind) {
      violated("commit", "\(label) \(fault)")
    }
  }

  /// Reports the messages that a node drops because their authors have no role.
  private mutating func noteDropped(_ ids: [EntryID], by index: Int) {
    guard let process = nodes[index].process else { return }
    for id in ids {
      guard let author = messages.author(of: id),
        !process.node.may(.sendText, author, in: channel.id)
      else { continue }
      messages.dropped(id)
    }
  }

  /// Reports a finished job to the checkers. A node applies a commit after the write, but all other
  /// changes at the time of the request, from which its timers therefore count.
  mutating func written(_ job: Disk.Job, at index: Int) {
    let takenInAt = job.commit == nil ? job.askedAt : now
    let writers = job.commit == nil ? job.writers : writers(at: index)
    for case .entry(let bytes, let id) in job.changes {
      guard let entry = try? Entry(decoding: bytes.dropLast(Entry.signatureBytes)) else { continue }
      if !job.fails {
        learn(entry, id, at: index, takenInAt: takenInAt, writers: writers)
      } else if case .message = entry.body, nodes[index].drafts[id] == nil {
        // Although the write failed, the message stays in the memory of the process.
        let isProven = writers?.contains(entry.author) ?? true
        messages.kept(id, at: nodes[index].reader, isUnproven: !isProven, at: takenInAt)
      }
      nodes[index].drafts[id] = nil
    }
    guard job.run == nodes[index].run, nodes[index].process != nil else { return }
    for message in job.messages {
      observe(message, at: index, shownAt: job.askedAt, writers: writers)
    }
  }

  /// The message authors that a running node knows to be allowed to write; nil without a process.
  func writers(at index: Int) -> [NodeID]? {
    guard let process = nodes[index].process else { return nil }
    return (messages.authors + [nodes[index].identity.id]).filter {
      process.node.may(.sendText, $0, in: channel.id)
    }
  }

  func isReportedDurable(_ job: Disk.Job) -> Bool {
    let hasEnd = job.changes.contains { change in
      guard case .entry(let bytes, _) = change,
        let entry = try? Entry(decoding: bytes.dropLast(Entry.signatureBytes))
      else { return false }
      return entry.body.kind == .end
    }
    return !job.fails && !(options.bug == .endsReportedFailed && hasEnd)
  }

  /// Reports to the checkers an entry that is now on a host's disk. The node has had the entry in
  /// memory since `takenInAt`; `writers` are the authors that the node knew at that time to be
  /// allowed to write, nil for all authors.
  mutating func learn(
    _ entry: Entry, _ id: EntryID, at index: Int, takenInAt: Instant, writers: [NodeID]?
  ) {
    let author = entry.author
    let isUnproven = !(writers?.contains(author) ?? true)
    let isOwn = author == nodes[index].identity.id
    if isOwn { commits.wrote(id) }
    if let draft = nodes[index].drafts[id] {
      messages.sent(draft, at: nodes[index].reader, isUnproven: isUnproven, takenInAt)
    }
    switch entry.body {
    case .claim(let claim):
      calls.learnt(
        claim: CallChecker.Statement(call: claim.call, term: claim.term, author: author), at: index)
    case .end(let end):
      calls.learnt(
        end: CallChecker.Statement(call: end.call, term: end.term, author: author), at: index)
    case .message:
      messages.kept(id, at: nodes[index].reader, isUnproven: isUnproven, at: takenInAt)
    case .redemption: if isOwn { nodes[index].disk.holdsRedemption = true }
    case .grant(let grant):
      guard isOwn, !grant.isBearer, isOwner(index) else { break }
      totals.grants += 1
      roles.granted(
        grant.role, to: grant.subject, expiresAt: grant.expiresAt,
        order: RoleChecker.Order(lamport: entry.lamport, author: author))
    case .epoch(let change):
      guard isOwn, index == 0 else { break }
      roles.changedKey(removing: change.removed)
      roles.shutOut(
        change.removed, order: RoleChecker.Order(lamport: entry.lamport, author: author))
    case .presence, .neighbourReport, .joining, .moderation, .unknown: break
    }
  }

  /// Whether the host's node is an owner of the channel.
  func isOwner(_ index: Int) -> Bool {
    scenario.kind == .created && (index == 0 || index == scenario.coOwner)
  }

  // MARK: Identities

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

  /// The index of the host that currently has this identity; nil if the identity was lost.
  func present(_ id: NodeID) -> Int? {
    owners[id].flatMap { nodes[$0].identity.id == id ? $0 : nil }
  }

  func label(_ id: NodeID) -> String {
    guard let index = owners[id] else { return id.short }
    return nodes[index].identity.id == id ? nodes[index].label : "\(nodes[index].label)'"
  }
}
