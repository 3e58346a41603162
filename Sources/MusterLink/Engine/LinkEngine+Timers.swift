import MusterBase

/// What time brings.
extension LinkEngine {
  /// Does what is due; harmless before `deadline`.
  public mutating func tick(at now: Instant) -> [Output] {
    guard let due = deadline, due <= now else { return [] }
    var outputs: [Output] = []
    for id in links.keys { outputs += tick(id, at: now) }
    deadline = nil
    for place in 0..<links.count { schedule(place) }
    return outputs
  }

  private mutating func tick(_ id: LinkID, at now: Instant) -> [Output] {
    guard let place = links.index(of: id) else { return [] }
    expireSessions(place, at: now)
    if links[at: place].isEstablished,
      now - links[at: place].lastHeard >= configuration.silenceLimit
    {
      return remove(id, reason: .timedOut)
    }
    var outputs = tickHandshake(place, at: now)
    guard links.index(of: id) == place else { return outputs }
    if links[at: place].isIdle { return outputs + remove(id, reason: .timedOut) }
    outputs += tickConfirmation(place, at: now)
    if links[at: place].current != nil, links[at: place].silenceProbeAt(configuration) <= now {
      outputs += challenge(place, links[at: place].address, at: now)
    }
    if links[at: place].current != nil,
      now - links[at: place].lastSent >= links[at: place].keepaliveInterval
    {
      outputs += sendKeepalive(place, at: now)
    }
    return outputs
  }

  /// Keys past their time are wiped.
  private mutating func expireSessions(_ place: Int, at now: Instant) {
    if links[at: place].current?.isUsable(at: now, configuration) == false {
      forget(links[at: place].current)
      links[at: place].current = nil
      links[at: place].confirmation = nil
    }
    if links[at: place].previous?.isUsable(at: now, configuration) == false {
      forget(links[at: place].previous)
      links[at: place].previous = nil
    }
    while let oldest = links[at: place].unconfirmed.first,
      now - oldest.createdAt >= configuration.confirmWithin
    {
      forget(links[at: place].unconfirmed.removeFirst())
    }
  }

  /// Begins the next session in time, repeats an unanswered initiation, gives up at last.
  private mutating func tickHandshake(_ place: Int, at now: Instant) -> [Output] {
    if let pending = links[at: place].pending {
      if now - pending.startedAt >= configuration.handshakeGiveUp { return giveUp(place) }
      return pending.nextAt <= now ? initiate(place, at: now) : []
    }
    guard let bootID = links[at: place].bootID,
      links[at: place].current.map({ $0.rekeyAt(configuration) <= now }) ?? true
    else { return [] }
    return startHandshake(place, bootID: bootID, address: links[at: place].address, at: now)
  }

  /// Until the peer has been heard under the current session, it is told again that it stands.
  private mutating func tickConfirmation(_ place: Int, at now: Instant) -> [Output] {
    guard var confirmation = links[at: place].confirmation, confirmation.nextAt <= now else {
      return []
    }
    confirmation.delay = min(
      confirmation.delay + confirmation.delay, configuration.handshakeRetryLimit)
    confirmation.nextAt = now + confirmation.delay
    links[at: place].confirmation = confirmation
    return sendKeepalive(place, at: now)
  }
}
