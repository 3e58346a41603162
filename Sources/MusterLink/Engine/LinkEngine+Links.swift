import MusterBase
import MusterCrypto
import MusterWire

/// The table of links and of the indices that lead to them.
extension LinkEngine {
  /// Where the link is in the table, made if need be; nil when there is no room or the peer's key
  /// is not a usable point.
  mutating func index(of id: SessionLinkID, address: Address, at now: Instant) -> Int? {
    if let position = links.index(of: id) { return position }
    guard let peerKey = id.peer.x25519PublicKey, makeRoom(in: id.key) else {
      counters.refused += 1
      return nil
    }
    links[id] = Link(
      id: id, peerKey: peerKey, address: address, lastHeard: now, liveness: PathLiveness(at: now),
      lastSent: now, keepaliveInterval: configuration.keepalive)
    return links.index(of: id)
  }

  /// Links of one channel that only the other side has asked for, and links of it in all.
  static let halfOpenPerKey = 32
  public static let linksPerKey = 96

  /// Links that nobody has confirmed crowd out each other, and no other channel's.
  private mutating func makeRoom(in key: KeyID) -> Bool {
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
      _ = remove(oldest.id, reason: .timedOut)  // never established: nobody is told
      total -= 1
    }
    return links.count < Limits.links && total < Self.linksPerKey
  }

  /// Forgets a link with its keys and indices.
  mutating func remove(_ id: SessionLinkID, reason: LinkCloseReason) -> [Output] {
    guard let position = links.index(of: id) else { return [] }
    let wasEstablished = links[at: position].isEstablished
    for index in links[at: position].indices { indices[index] = nil }
    links[id] = nil
    return wasEstablished ? [.closed(id, reason)] : []
  }

  /// A receiver's index that nobody can guess and nobody uses.
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

  /// Makes sure that `tick` is called in time for this link.
  mutating func schedule(_ position: Int) {
    deadline = soonest(deadline, links[at: position].deadline(configuration))
  }

  /// Puts a finished handshake's session to use: the former becomes the previous one.
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
      links[at: position].address = session.address
      links[at: position].liveness.restart(at: now)
      outputs.append(.established(id, address: session.address, bootID: session.bootID))
    } else {
      // A round trip went through that address: as good as an answered challenge.
      outputs += move(position, to: session.address, at: now)
    }
    outputs += sendKeepalive(position, at: now)
    if session.isInitiator {
      let delay = configuration.handshakeRetry
      links[at: position].confirmation = Link.Repeated(nextAt: now + delay, delay: delay)
    }
    schedule(position)
    return outputs
  }

  /// Seals a payload of the link's own towards its address, or another.
  mutating func send(
    _ payload: [UInt8], _ position: Int, to address: Address? = nil, at now: Instant
  ) -> [Output] {
    let sealed = links[at: position].seal(
      payload, [], at: now, lifetime: configuration.rejectAfter)
    return sealed.map { [.send($0.datagram, to: address ?? $0.to)] } ?? []
  }

  mutating func sendKeepalive(_ position: Int, at now: Instant) -> [Output] {
    counters.keepalivesSent += 1
    links[at: position].lastSent = now
    links[at: position].keepaliveInterval = jitter.jittered(
      configuration.keepalive, by: configuration.keepaliveJitter)
    return send([PayloadKind.keepaliveByte], position, at: now)
  }
}
