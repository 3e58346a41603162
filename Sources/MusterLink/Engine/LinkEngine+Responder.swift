import MusterBase
import MusterCrypto
import MusterWire

/// The responder's side of the handshake.
extension LinkEngine {
  /// Handles an initiation, with checks in order of cost: length, first MAC (which also identifies
  /// the channel), cookie or rate limit, Diffie-Hellman, replay.
  mutating func receiveInitiation(
    _ datagram: [UInt8], from source: Route, at now: Instant
  ) -> [Output] {
    guard let message = Initiation(datagram), source.isUnicast else {
      counters.malformed += 1
      return []
    }
    guard let openKey = openKey(of: message.macs) else {
      counters.wrongMAC += 1
      return []
    }
    // A replayed initiation gets no reply, not even a cookie.
    guard !answeredInitiations.contains(message.macs.mac1) else {
      counters.replayedInitiations += 1
      return []
    }
    if message.macs.hasMAC2 {
      guard cookies.isValid(message.macs, from: source, at: now) else {
        counters.wrongCookie += 1
        return []
      }
      guard budgetWithCookie.take(at: now) else {
        counters.flooded += 1
        return []
      }
    } else if !budgetWithoutCookie.take(at: now) {
      return demandCookie(message, openKey, from: source, at: now)
    }
    // The MAC is recorded even if the initiation turns out to be unusable, so that a replay causes
    // no further Diffie-Hellman.
    answeredInitiations.insert(message.macs.mac1)
    guard let (handshake, payload) = read(message, openKey), source.mayLead(to: payload.author)
    else { return [] }
    let id = SessionLinkID(key: openKey.key.keyID, peer: payload.author)
    guard remember(payload, id, at: now) else {
      counters.replayedInitiations += 1
      return []
    }
    guard !ownGoesFirst(id, bootID: payload.bootID, at: now) else {
      counters.tieBreaks += 1
      return []
    }
    return answer(message, payload, handshake, id, openKey, from: source, at: now)
  }

  private func openKey(of macs: ReceivedMACs) -> OpenKey? {
    for (_, openKey) in openKeys where macs.mac1IsValid(openKey.initiationKey) { return openKey }
    return nil
  }

  private mutating func demandCookie(
    _ message: Initiation, _ openKey: OpenKey, from source: Route, at now: Instant
  ) -> [Output] {
    let reply = CookieReply.encode(
      receiverIndex: message.senderIndex,
      cookie: cookies.cookie(for: source, entropy: &entropy, at: now), mac1: message.macs.mac1,
      key: openKey.cookieKey, nonce: entropy.bytes(24))
    guard let reply else { return [] }
    counters.cookiesSent += 1
    return [.send(reply, over: source)]
  }

  private mutating func read(
    _ message: Initiation, _ openKey: OpenKey
  ) -> (HandshakeState, InitiationPayload)? {
    var handshake = HandshakeState(
      .ikPSK2, .responder, prologue: openKey.prologue, staticKeys: identity.linkKeys,
      psk: openKey.key.noisePSK)
    guard let opened = handshake.read(message.noise), let remote = handshake.remoteStatic,
      let payload = try? InitiationPayload(decoding: opened),
      payload.author != identity.id, payload.author.x25519PublicKey == remote
    else {
      counters.unverifiable += 1
      return nil
    }
    guard payload.responderBootID == bootID else {
      counters.wrongBoot += 1
      return nil
    }
    return (handshake, payload)
  }

  /// Records the counter of an initiation; false for a replay.
  private mutating func remember(
    _ payload: InitiationPayload, _ id: SessionLinkID, at now: Instant
  ) -> Bool {
    if let position = memories.index(of: id) {
      return memories[at: position].accept(
        bootID: payload.bootID, counter: payload.counter, at: now)
    }
    if memories.count >= Self.memoryLimit { forgetOldestMemory() }
    var memory = HandshakeMemory()
    let isNew = memory.accept(bootID: payload.bootID, counter: payload.counter, at: now)
    memories[id] = memory
    return isNew
  }

  /// Evicts the oldest entry of a peer without a link. Only initiations under a channel key create
  /// entries, so an outsider cannot cause an eviction.
  private mutating func forgetOldestMemory() {
    var oldest: (id: SessionLinkID, at: Instant)?
    for (id, memory) in memories where links.index(of: id) == nil {
      if oldest.map({ memory.touchedAt < $0.at }) ?? true { oldest = (id, memory.touchedAt) }
    }
    if let oldest { memories[oldest.id] = nil }
  }

  /// Whether this node's initiation takes precedence over the peer's: for `tieBreakPatience`, the
  /// initiation of the node with the smaller id does. If the peer still initiates after that time,
  /// this node's initiation does not arrive, and the peer's initiation is answered.
  private func ownGoesFirst(_ id: SessionLinkID, bootID: UInt64, at now: Instant) -> Bool {
    guard identity.id < id.peer, let position = links.index(of: id),
      let pending = links[at: position].pending, pending.bootID == bootID
    else { return false }
    return now - pending.startedAt < configuration.tieBreakPatience
  }

  private mutating func answer(
    _ message: Initiation, _ payload: InitiationPayload, _ read: HandshakeState,
    _ id: SessionLinkID, _ openKey: OpenKey, from source: Route, at now: Instant
  ) -> [Output] {
    var handshake = read
    let response = ResponsePayload(bootID: bootID, capabilities: configuration.capabilities)
    let pair = X25519.KeyPair(generating: &entropy)
    guard let noise = handshake.write(response.encoded(), ephemeral: pair) else {
      counters.unverifiable += 1
      return []
    }
    guard let position = index(of: id, route: source, at: now) else { return [] }
    let session = Session(
      keys: handshake.split(), localIndex: newIndex(for: id), remoteIndex: message.senderIndex,
      isInitiator: false, bootID: payload.bootID,
      capabilities: configuration.capabilities.intersection(payload.capabilities),
      route: source, createdAt: now)
    links[at: position].unconfirmed.append(session)
    if links[at: position].unconfirmed.count > Limits.sessionsPerLink {
      forget(links[at: position].unconfirmed.removeFirst())
    }
    if let next = links[at: position].pending?.nextAt {
      // The peer's handshake is almost complete, so this node's handshake waits.
      let patience = configuration.tieBreakPatience
      links[at: position].pending?.nextAt = max(next, now + patience + patience)
    }
    counters.responsesSent += 1
    schedule(position)
    let datagram = Response.encode(
      senderIndex: session.localIndex, receiverIndex: message.senderIndex, noise: noise,
      key: openKey.key.handshakeKey(.response, responder: identity.x25519PublicKey))
    return [.send(datagram, over: source)]
  }
}
