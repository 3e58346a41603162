import MusterBase
import MusterCrypto
import MusterWire

/// The initiator's side of the handshake.
extension LinkEngine {
  mutating func startHandshake(
    _ position: Int, bootID: UInt64, route: Route, at now: Instant
  ) -> [Output] {
    dropPending(position)
    links[at: position].pending = PendingHandshake(
      bootID: bootID, route: route, startedAt: now, nextAt: now,
      delay: configuration.handshakeRetry)
    return initiate(position, at: now)
  }

  /// Sends an initiation. Every attempt is a new message, because a repeated message would be
  /// rejected as a replay.
  mutating func initiate(_ position: Int, at now: Instant) -> [Output] {
    let id = links[at: position].id
    let peerKey = links[at: position].peerKey
    guard var pending = links[at: position].pending, let openKey = openKey(id.key) else {
      return []
    }
    pending.nextAt = now + jitter.jittered(pending.delay, by: configuration.handshakeJitter)
    pending.delay = min(pending.delay + pending.delay, configuration.handshakeRetryLimit)
    let cookie = pending.takeCookie(at: now, lifetime: configuration.cookieLifetime)
    handshakeCounter += 1
    var handshake = HandshakeState(
      .ikPSK2, .initiator, prologue: openKey.prologue, staticKeys: identity.linkKeys,
      remoteStatic: peerKey, psk: openKey.key.noisePSK)
    let payload = InitiationPayload(
      author: identity.id, bootID: bootID, counter: handshakeCounter,
      responderBootID: pending.bootID, capabilities: configuration.capabilities)
    let noise = handshake.write(
      payload.encoded(), ephemeral: X25519.KeyPair(generating: &entropy))
    guard let noise else {
      // The Diffie-Hellman with the peer's key fails, as it would on every attempt.
      counters.unverifiable += 1
      return giveUp(position, at: now)
    }
    let index = newIndex(for: id)
    let datagram = Initiation.encode(
      senderIndex: index, noise: noise,
      key: openKey.key.handshakeKey(.initiation, responder: peerKey), cookie: cookie)
    let mac1 = Array(ReceivedMACs(datagram).mac1)
    pending.attempts.append(
      .init(
        localIndex: index, handshake: handshake, mac1: mac1, hadCookie: cookie != nil,
        route: pending.route))
    if pending.attempts.count > PendingHandshake.attemptLimit {
      indices[pending.attempts.removeFirst().localIndex] = nil
    }
    links[at: position].pending = pending
    counters.initiationsSent += 1
    schedule(position)
    return [.send(datagram, over: pending.route)]
  }

  mutating func receiveResponse(_ datagram: [UInt8], at now: Instant) -> [Output] {
    guard let message = Response(datagram) else {
      counters.malformed += 1
      return []
    }
    guard let (position, attempt) = attempt(message.receiverIndex),
      let openKey = openKey(links[at: position].id.key),
      let pending = links[at: position].pending
    else {
      counters.unknownIndex += 1
      return []
    }
    let key = openKey.key.handshakeKey(.response, responder: links[at: position].peerKey)
    guard message.macs.mac1IsValid(key) else {
      counters.wrongMAC += 1
      return []
    }
    // The second MAC of a response is all zeros; without this check, its bytes could be altered in
    // transit.
    guard !message.macs.hasMAC2 else {
      counters.wrongCookie += 1
      return []
    }
    var handshake = pending.attempts[attempt].handshake
    guard let opened = handshake.read(message.noise),
      let payload = try? ResponsePayload(decoding: opened)
    else {
      counters.unverifiable += 1
      return []
    }
    guard payload.bootID == pending.bootID else {
      counters.wrongBoot += 1
      return []
    }
    // The responder answers over the route of the attempt, so that both ends of a new link begin
    // with the same path, whatever discovery has found meanwhile. A rekey leaves the path as it is.
    let isRekey = links[at: position].bootID == pending.bootID
    let session = Session(
      keys: handshake.split(), localIndex: message.receiverIndex,
      remoteIndex: message.senderIndex, isInitiator: true, bootID: payload.bootID,
      capabilities: configuration.capabilities.intersection(payload.capabilities),
      route: isRekey ? pending.route : pending.attempts[attempt].route, createdAt: now)
    // The index stays allocated, because it now belongs to the session.
    links[at: position].pending?.attempts.remove(at: attempt)
    return install(session, position, at: now)
  }

  mutating func receiveCookie(_ datagram: [UInt8], at now: Instant) -> [Output] {
    guard let message = CookieReply(datagram) else {
      counters.malformed += 1
      return []
    }
    guard let (position, number) = attempt(message.receiverIndex),
      let openKey = openKey(links[at: position].id.key),
      let attempt = links[at: position].pending?.attempts[number], !attempt.hasCookieReply
    else {
      counters.unknownIndex += 1
      return []
    }
    let key = openKey.key.handshakeKey(.cookie, responder: links[at: position].peerKey)
    guard let cookie = message.cookie(mac1: attempt.mac1, key: key) else {
      counters.unverifiable += 1
      return []
    }
    counters.cookiesReceived += 1
    links[at: position].pending?.attempts[number].hasCookieReply = true
    links[at: position].pending?.cookie = (cookie, PendingHandshake.cookieUses, now)
    // A cookie reply to an attempt that carried a cookie triggers no extra attempt.
    guard !attempt.hadCookie else { return [] }
    return initiate(position, at: now)
  }

  /// Ends an unanswered handshake. Closes the link, too, if the handshake was a rekey, or if no
  /// session remains that could establish the link.
  mutating func giveUp(_ position: Int, at now: Instant) -> [Output] {
    counters.handshakesGivenUp += 1
    let id = links[at: position].id
    let wasRekey = links[at: position].pending?.bootID == links[at: position].bootID
    dropPending(position)
    return wasRekey || links[at: position].isIdle ? remove(id, reason: .timedOut, at: now) : []
  }

  func openKey(_ id: KeyID) -> OpenKey? { openKeys.index(of: id).map { openKeys[at: $0] } }

  /// The positions of the link and of the attempt that an index was allocated for; nil if there is
  /// no such pending attempt.
  private func attempt(_ index: UInt32) -> (Int, Int)? {
    guard let id = indices[index], let position = links.index(of: id),
      let number = links[at: position].pending?.attempts.firstIndex(where: {
        $0.localIndex == index
      })
    else { return nil }
    return (position, number)
  }
}
