import MusterBase
import MusterCrypto
import MusterWire

/// The management of links and of local indices.
extension LinkEngine {
  /// The table index of a link, which is created if necessary; nil if there is no room or the
  /// peer's key is not a usable curve point.
  mutating func index(of id: SessionLinkID, route: Route, at now: Instant) -> Int? {
    if let position = links.index(of: id) { return position }
    guard let peerKey = id.peer.x25519PublicKey, makeRoom(in: id.key, at: now) else {
      counters.refused += 1
      return nil
    }
    let link = Link(
      id: id, peerKey: peerKey, route: route, at: now, keepalive: configuration.keepalive)
    links[id] = link
    paths.move(from: nil, to: link.path, at: now)
    return links.index(of: id)
  }

  /// The maximum number of half-open links per channel key: links that the peer has initiated but
  /// not confirmed.
  static let halfOpenPerKey = 32
  /// The maximum number of links per channel key.
  public static let linksPerKey = 96

  /// Makes room for a link by evicting the oldest half-open link of the same key; established links
  /// and links of other keys are never evicted. Returns false if there is still no room.
  private mutating func makeRoom(in key: KeyID, at now: Instant) -> Bool {
    var total = 0
    var halfOpen: [(id: SessionLinkID, at: Instant)] = []
    for position in 0..<links.count where links.keys[position].key == key {
      total += 1
      if !links[at: position].isEstablished, links[at: position].pending == nil {
        halfOpen.append((links.keys[position], links[at: position].lastHeard))
      }
    }
    if halfOpen.count >= Self.halfOpenPerKey || links.count >= Limits.links,
      let oldest = halfOpen.min(by: { $0.at < $1.at })
    {
      // The evicted link was never established, so there is nothing to report.
      _ = remove(oldest.id, reason: .timedOut, at: now)
      total -= 1
    }
    return links.count < Limits.links && total < Self.linksPerKey
  }

  /// Removes a link with its keys and indices.
  mutating func remove(
    _ id: SessionLinkID, reason: LinkCloseReason, at now: Instant
  ) -> [Output] {
    guard let position = links.index(of: id) else { return [] }
    let wasEstablished = links[at: position].isEstablished
    for index in links[at: position].indices { indices[index] = nil }
    paths.leave(links[at: position].path, at: now)
    links[id] = nil
    return wasEstablished ? [.closed(id, reason)] : []
  }

  /// Allocates an unused, unpredictable local index.
  mutating func newIndex(for id: SessionLinkID) -> UInt32 {
    while true {
      let index = entropy.u32()
      if index != 0 && indices.index(of: index) == nil {
        indices[index] = id
        return index
      }
    }
  }

  mutating func forget(_ session: Session?) {
    if let session { indices[session.localIndex] = nil }
  }

  mutating func dropPending(_ position: Int) {
    for attempt in links[at: position].pending?.attempts ?? [] { indices[attempt.localIndex] = nil }
    links[at: position].pending = nil
  }

  /// Advances the engine's deadline if this link is due earlier.
  mutating func schedule(_ position: Int) {
    deadline = soonest(deadline, links[at: position].deadline(configuration))
  }

  /// Installs the session of a completed handshake; the current session becomes the previous
  /// session, or is discarded if the peer has restarted.
  mutating func install(_ session: Session, _ position: Int, at now: Instant) -> [Output] {
    let id = links[at: position].id
    var outputs: [Output] = []
    if let old = links[at: position].bootID, old != session.bootID {
      outputs.append(.closed(id, .replaced))
      forget(links[at: position].current)
      links[at: position].current = nil
      links[at: position].bootID = nil
    }
    counters.sessionsMade += 1
    forget(links[at: position].previous)
    links[at: position].previous = links[at: position].current
    links[at: position].current = session
    links[at: position].endProbes()
    links[at: position].confirmation = nil
    links[at: position].lastHeard = now
    dropPending(position)
    if links[at: position].bootID == nil {
      links[at: position].bootID = session.bootID
      lead(position, over: session.route, at: now)
      paths.change(links[at: position].path, at: now) { $0.liveness.restart(at: now) }
      outputs.append(.established(id, route: session.route, bootID: session.bootID))
    } else {
      outputs += move(position, to: session.route, at: now)
    }
    // The handshake made a round trip over this route, and so validated the route like a challenge.
    paths.change(links[at: position].path, at: now) { $0.validated(at: now) }
    outputs += sendKeepalive(position, at: now)
    if session.isInitiator {
      let delay = configuration.handshakeRetry
      links[at: position].confirmation = Link.Repeated(nextAt: now + delay, delay: delay)
    }
    schedule(position)
    return outputs
  }

  /// Seals a payload for `route`, or for the link's route if `route` is nil, and counts the
  /// datagram on that path. Nil without a usable session.
  mutating func seal(
    _ payload: OutgoingPayload, _ position: Int, over route: Route? = nil, at now: Instant
  ) -> SealedDatagram? {
    let sealed = links[at: position].seal(
      payload, over: route, at: now, lifetime: configuration.rejectAfter)
    guard let sealed else { return nil }
    paths.change(PathID(peer: links.keys[position].peer, route: sealed.route), at: now) {
      $0.sent(sealed.datagram.count, number: sealed.packetNumber, at: now)
    }
    return sealed
  }

  /// Sends a keepalive or a path message over `route`, or over the link's route if `route` is nil.
  mutating func send(
    _ payload: [UInt8], _ position: Int, over route: Route? = nil, at now: Instant
  ) -> [Output] {
    let sealed = seal(OutgoingPayload(payload), position, over: route, at: now)
    return sealed.map { [.send($0.datagram, over: $0.route)] } ?? []
  }

  /// Changes a link's route. No other function may do so, to keep the path table consistent.
  mutating func lead(_ position: Int, over route: Route, at now: Instant) {
    let former = links[at: position].path
    guard former.route != route else { return }
    links[at: position].lead(over: route)
    paths.move(from: former, to: links[at: position].path, at: now)
  }

  mutating func sendKeepalive(_ position: Int, at now: Instant) -> [Output] {
    counters.keepalivesSent += 1
    links[at: position].lastSent = now
    links[at: position].keepaliveInterval = jitter.jittered(
      configuration.keepalive, by: configuration.keepaliveJitter)
    return send([PayloadKind.keepaliveByte], position, at: now)
  }
}
