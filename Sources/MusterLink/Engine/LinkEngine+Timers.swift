import MusterBase

/// The timers for rekeying, retries, keepalives and expiry.
extension LinkEngine {
  /// Handles all due timers; has no effect before `deadline`.
  public mutating func tick(at now: Instant) -> [Output] {
    guard let due = deadline, due <= now else { return [] }
    var outputs: [Output] = []
    for id in links.keys { outputs += tick(id, at: now) }
    deadline = nil
    for position in 0..<links.count { schedule(position) }
    return outputs
  }

  private mutating func tick(_ id: SessionLinkID, at now: Instant) -> [Output] {
    guard let position = links.index(of: id) else { return [] }
    expireSessions(position, at: now)
    if links[at: position].isEstablished,
      now - links[at: position].lastHeard >= configuration.silenceLimit
    {
      return remove(id, reason: .timedOut, at: now)
    }
    var outputs = tickHandshake(position, at: now)
    guard links.index(of: id) == position else { return outputs }
    if links[at: position].isIdle { return outputs + remove(id, reason: .timedOut, at: now) }
    outputs += tickConfirmation(position, at: now)
    outputs += tickComparison(position, at: now)
    if links[at: position].current != nil, links[at: position].silenceProbeAt(configuration) <= now
    {
      outputs += challenge(position, links[at: position].route, at: now)
    }
    if links[at: position].current != nil,
      now - links[at: position].lastSent >= links[at: position].keepaliveInterval
    {
      outputs += sendKeepalive(position, at: now)
    }
    return outputs
  }

  /// Wipes the keys of expired sessions.
  private mutating func expireSessions(_ position: Int, at now: Instant) {
    if links[at: position].current?.isUsable(at: now, configuration) == false {
      forget(links[at: position].current)
      links[at: position].current = nil
      links[at: position].confirmation = nil
    }
    if links[at: position].previous?.isUsable(at: now, configuration) == false {
      forget(links[at: position].previous)
      links[at: position].previous = nil
    }
    while let oldest = links[at: position].unconfirmed.first,
      now - oldest.createdAt >= configuration.confirmWithin
    {
      forget(links[at: position].unconfirmed.removeFirst())
    }
  }

  /// Starts rekeying when due, retries an unanswered initiation, and finally gives up.
  private mutating func tickHandshake(_ position: Int, at now: Instant) -> [Output] {
    if let pending = links[at: position].pending {
      if now - pending.startedAt >= configuration.handshakeGiveUp {
        return giveUp(position, at: now)
      }
      return pending.nextAt <= now ? initiate(position, at: now) : []
    }
    guard let bootID = links[at: position].bootID,
      links[at: position].current.map({ $0.rekeyAt(configuration) <= now }) ?? true
    else { return [] }
    return startHandshake(position, bootID: bootID, route: links[at: position].route, at: now)
  }

  /// Repeats the keepalive that confirms the current session, until a datagram under that session
  /// arrives from the peer.
  private mutating func tickConfirmation(_ position: Int, at now: Instant) -> [Output] {
    guard var confirmation = links[at: position].confirmation, confirmation.nextAt <= now else {
      return []
    }
    confirmation.delay = min(
      confirmation.delay + confirmation.delay, configuration.handshakeRetryLimit)
    confirmation.nextAt = now + confirmation.delay
    links[at: position].confirmation = confirmation
    return sendKeepalive(position, at: now)
  }
}
