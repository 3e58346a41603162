import MusterBase
import MusterCrypto
import MusterWire

extension ChannelState {
  /// A link to `peer` can be used: it is told who this node is.
  public mutating func linkUp(_ peer: NodeID, at now: Instant) -> [Output] {
    guard peer != identity.id, !hasLeft else { return [] }
    if let index = peers.index(of: peer) { return [introduce(at: index, now)] }
    guard peers.count < Limits.peersPerChannel else {
      counters.peersRefused += 1
      return []
    }
    peers[peer] = Peer(delivery: HelloDelivery(sentAt: now))
    // A hello of sequence 0 would look old to a peer that knew this node before it came back.
    if own.sequence == 0 { advanceSequence(at: now) }
    return [.send(.hello(signedHello()), to: peer)]
  }

  /// The link to `peer` is gone, and with it the member.
  public mutating func linkDown(
    _ peer: NodeID, reason: LeaveReason, at now: Instant
  ) -> [Output] {
    guard let index = peers.index(of: peer) else { return [] }
    let member = peers[at: index].member
    peers[peer] = nil
    return commit(at: now) { state in
      guard let member else { return [] }
      return state.farewell(to: member, reason)
    }
  }

  /// Takes in a hello that came over the link to `peer`.
  public mutating func receiveHello(
    _ signed: [UInt8], from peer: NodeID, at now: Instant
  ) -> [Output] {
    guard !hasLeft, let (index, hello) = admit(signed, from: peer, at: now) else { return [] }
    let receipt = Output.send(
      .helloReceived(bootID: hello.bootID, sequence: hello.sequence), to: peer)
    let known = peers[at: index]
    if known.bootID == hello.bootID, hello.sequence <= known.sequence {
      counters.repeated += 1
      return [receipt]
    }
    var outputs = [receipt]
    // A peer that is new here may have forgotten this node: the channel left and joined again.
    let isNew = known.member == nil || known.bootID != hello.bootID
    if isNew, known.delivery.isAcknowledged, !hello.flags.contains(.left) {
      outputs.append(introduce(at: index, now))
    }
    return outputs + commit(at: now) { $0.accept(hello, at: index) }
  }

  /// The peer has a hello of this node; only the newest one matters.
  public mutating func receiveAcknowledgement(
    bootID: UInt64, sequence: UInt64, from peer: NodeID, at now: Instant
  ) -> [Output] {
    guard let index = peers.index(of: peer), bootID == own.bootID, sequence <= own.sequence else {
      counters.strangeAcknowledgement += 1
      return []
    }
    if sequence == own.sequence {
      peers[at: index].delivery.acknowledged(at: now, isLast: hasLeft)
    }
    return []
  }

  private mutating func introduce(at index: Int, _ now: Instant) -> Output {
    peers[at: index].delivery = HelloDelivery(sentAt: now)
    return .send(.hello(signedHello()), to: peers.keys[index])
  }

  /// The hello, if it may come from this peer; otherwise the fault is counted.
  private mutating func admit(
    _ signed: [UInt8], from peer: NodeID, at now: Instant
  ) -> (index: Int, hello: Hello)? {
    guard let index = peers.index(of: peer) else {
      counters.unlinked += 1
      return nil
    }
    guard peers[at: index].budget.take(at: now) else {
      counters.overBudget += 1
      return nil
    }
    let hello: Hello
    do { hello = try SignedHello.verified(signed, in: channel) } catch {
      if error == .forged { counters.forged += 1 } else { counters.malformed += 1 }
      return nil
    }
    // Until there is gossip nobody speaks for another.
    guard hello.author == peer else {
      counters.foreign += 1
      return nil
    }
    guard !peers[at: index].formerBoots.contains(hello.bootID) else {
      counters.formerBoot += 1
      return nil
    }
    return (index, hello)
  }

  /// Makes `hello` the newest of its author.
  private mutating func accept(_ hello: Hello, at index: Int) -> [ChannelEvent] {
    var events: [ChannelEvent] = []
    if peers[at: index].bootID != hello.bootID { events += replaceBoot(with: hello, at: index) }
    peers[at: index].bootID = hello.bootID
    peers[at: index].sequence = hello.sequence
    if let id = hello.endedCall { ended.insert(id, by: hello.author) }

    let before = peers[at: index].member
    if hello.flags.contains(.left) {
      peers[at: index].member = nil
      return events + (before.map { farewell(to: $0, .left) } ?? settle())
    }
    let member = Member(hello)
    peers[at: index].member = member
    if let before {
      if before != member { events.append(.memberUpdated(member)) }
    } else {
      events.append(.memberJoined(member))
    }
    return events + settle()
  }

  private mutating func replaceBoot(with hello: Hello, at index: Int) -> [ChannelEvent] {
    guard let former = peers[at: index].bootID else { return [] }
    peers[at: index].formerBoots.append(former)
    if peers[at: index].formerBoots.count > Self.formerBoots {
      peers[at: index].formerBoots.removeFirst()
    }
    guard let member = peers[at: index].member else { return [] }
    peers[at: index].member = nil
    return farewell(to: member, .replaced)
  }

  /// What follows from a member's being gone: it leaves the call, then the channel.
  private mutating func farewell(to member: Member, _ reason: LeaveReason) -> [ChannelEvent] {
    settle(gone: (member.id, reason)) + [.memberLeft(member, reason)]
  }
}

extension ChannelState {
  /// Works out the call anew, and moves this node along with it.
  mutating func settle(gone: (member: NodeID, reason: LeaveReason)? = nil) -> [ChannelEvent] {
    if let mine = own.call, ended.contains(mine) { own.call = nil }
    remindOfEnds()
    if own.call != nil, let active = CallView.active(among: claims, ended: ended) {
      own.call = active.info
    }
    if own.call == nil { own.flags.remove(.inCall) } else { own.flags.insert(.inCall) }

    let active = CallView.active(among: claims, ended: ended)
    defer { call = active }
    return CallView.events(from: call, to: active, ended: ended, gone: gone)
  }

  /// What everyone, this node included, says to be in, in the order of their ids.
  private var claims: [CallView.Claim] {
    var claims = members.compactMap { member in
      member.call.map { CallView.Claim(member: member.id, call: $0) }
    }
    if let call = own.call {
      let place = claims.firstIndex { identity.id < $0.member } ?? claims.endIndex
      claims.insert(CallView.Claim(member: identity.id, call: call), at: place)
    }
    return claims
  }

  /// A member that was away when this node ended a call, and another since, is told again.
  private mutating func remindOfEnds() {
    let missed = claims.map(\.call).filter { $0.initiator == identity.id }
    if let id = ended.latest(among: missed) { own.endedCall = id }
  }
}
