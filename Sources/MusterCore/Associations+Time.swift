import MusterBase
import MusterLink

extension Associations {
  // MARK: Restricted sessions

  /// Whether the rate limit allows one more credential over a restricted session.
  mutating func takeCredential(of session: SessionLinkID, at now: Instant) -> Bool {
    updateRestriction(of: session) { $0.credentials.take(at: now) } ?? false
  }

  // MARK: Time

  /// Closes drained and expired session links and repeats key offers; has no effect before
  /// `deadline`.
  mutating func tick(at now: Instant) -> [Output] {
    var out: [Output] = []
    for (session, entry) in sessions {
      switch entry.role {
      case .draining(let until) where until <= now:
        forget(session)
        out.append(.close(session))
      case .restricted: out += tick(restricted: session, at: now)
      case .current, .draining, .suspended: break
      }
    }
    return out
  }

  private mutating func tick(restricted session: SessionLinkID, at now: Instant) -> [Output] {
    guard let restriction = restriction(of: session), restriction.nextAt <= now else { return [] }
    let isOver = restriction.refusedAt.map { now - $0 >= Self.refusedTime } ?? false
    guard !isOver, now - restriction.since < Self.restrictedTime else {
      forget(session)
      return [.close(session)]
    }
    return [.exchangeCredentials(session)]
  }

  /// Schedules the next exchange of credentials over a restricted session.
  mutating func scheduleExchange(
    over session: SessionLinkID, after interval: Duration, at now: Instant
  ) {
    _ = updateRestriction(of: session) { $0.nextAt = now + interval }
  }

  // MARK: Invariants

  func checkInvariants(exists: (SessionLinkID) -> Bool) -> [String] {
    var found: [String] = []
    for (link, peer) in peers {
      let session = SessionLinkID(key: peer.key, peer: link.peer)
      guard let entry = sessions[session], entry.role == .current else {
        found.append("association with \(link.peer) has no session of its own")
        continue
      }
      if entry.channel != link.channel {
        found.append("\(link.peer) has another channel's session")
      }
    }
    for (session, entry) in sessions {
      if !exists(session) { found.append("no link for the \(entry.role) of \(session.peer)") }
      let link = LinkID(channel: entry.channel, peer: session.peer)
      if entry.role == .current, peers[link]?.key != session.key {
        found.append("session with \(session.peer) carries no association")
      }
      if (entry.role == .restricted) != isRestricted(session) {
        found.append("restriction of \(session.peer) without its role")
      }
      if case .suspended = entry.role, !hasSuspended {
        found.append("suspended session with \(session.peer) is not watched")
      }
    }
    if deadline != nextDeadline { found.append("sessions have work at another time") }
    if !peers.isConsistent { found.append("an association changed its deadline unnoticed") }
    if peers.count > Limits.links { found.append("\(peers.count) associations") }
    return found
  }
}
