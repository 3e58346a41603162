import MusterBase
import MusterCrypto
import MusterWire

/// Which path a link uses: a route is challenged before the link moves there (RFC 9000 section 9).
extension LinkEngine {
  mutating func handlePath(
    _ payload: [UInt8], _ position: Int, _ slot: Link.Slot, from source: Route, at now: Instant
  ) -> [Output] {
    guard let message = try? PathMessage(decoding: payload) else {
      counters.unknownPayloads += 1
      return []
    }
    switch message {
    case .challenge(let token):
      // Back to where it came from: that is the path in question (RFC 9000 8.2.2).
      guard source.isUnicast,
        source == links[at: position].route || links[at: position].pathAnswers.take(at: now)
      else { return [] }
      return send(PathMessage.response(token).encoded(), position, over: source, at: now)
    case .response(let token): return finishChallenge(token, position, from: source, at: now)
    case .close:
      // A late close under an earlier session does not end what was begun after it.
      return slot == .previous
        ? [] : remove(links[at: position].id, reason: .left, at: now)
    }
  }

  // MARK: Moving

  /// The newest datagram came over another path. An address is challenged first; a relay is a known
  /// member, so that a link over which nothing is heard directly just follows.
  mutating func follow(_ position: Int, to source: Route, at now: Instant) -> [Output] {
    guard !source.isDirect else { return inducedChallenge(position, source, at: now) }
    let link = links[at: position]
    let liveness = liveness(position, at: now)
    let mayFollow =
      if link.route.isDirect {
        now - liveness.lastAt >= configuration.quietBeforeRelayed
      } else {
        // When both ends choose a relay at once, the smaller id's choice stands: else the two would
        // change places again and again.
        identity.id > link.id.peer || liveness.lateAt <= now
      }
    return mayFollow ? move(position, to: source, at: now) : []
  }

  private func liveness(_ position: Int, at now: Instant) -> PathLiveness {
    paths[links[at: position].path]?.liveness ?? PathLiveness(at: now)
  }

  /// `roundTrip` of the new path, where it is known: nothing can come over it sooner than after two,
  /// since the other end has to follow first. The bound is for a peer that slept or took its time to
  /// answer.
  mutating func move(
    _ position: Int, to route: Route, roundTrip: Duration = .zero, at now: Instant
  ) -> [Output] {
    guard links[at: position].route != route else { return [] }
    lead(position, over: route, at: now)
    let patience = min(roundTrip, configuration.longestRoundTrip)
    paths.change(links[at: position].path, at: now) {
      $0.liveness.restart(at: now + patience + patience)
    }
    if links[at: position].pending?.bootID == links[at: position].bootID {
      links[at: position].pending?.route = route
    }
    return [.moved(links[at: position].id, to: route)]
  }

  // MARK: Challenges

  /// Others can bring about so many challenges of a link and no more.
  private mutating func inducedChallenge(
    _ position: Int, _ route: Route, at now: Instant
  ) -> [Output] {
    guard links[at: position].inducedProbes.take(at: now) else { return [] }
    return challenge(position, route, at: now)
  }

  /// Moves to a route over which an answer came, and has the other end follow.
  private mutating func moveDirectly(
    _ position: Int, to route: Route, roundTrip: Duration, at now: Instant
  ) -> [Output] {
    let moved = move(position, to: route, roundTrip: roundTrip, at: now)
    return moved.isEmpty ? [] : moved + sendKeepalive(position, at: now)
  }

  /// Asks the peer whether it is really at the far end of a route; the old one stays in use
  /// meanwhile.
  mutating func challenge(
    _ position: Int, _ route: Route, at now: Instant
  ) -> [Output] {
    guard route.isUnicast else { return [] }
    let token = entropy.u64()
    links[at: position].begin(Link.Probe(route: route, token: token, sentAt: now))
    counters.challengesSent += 1
    paths.change(PathID(peer: links.keys[position].peer, route: route), at: now) {
      $0.challenged(at: now)
    }
    return send(PathMessage.challenge(token).encoded(), position, over: route, at: now)
  }

  private mutating func finishChallenge(
    _ token: UInt64, _ position: Int, from source: Route, at now: Instant
  ) -> [Output] {
    if let moved = finishComparison(token, position, from: source, at: now) { return moved }
    guard let probe = links[at: position].takeProbe(token, from: source) else {
      counters.strayPathResponses += 1
      return []
    }
    answered(position, over: source, roundTrip: now - probe.sentAt, at: now)
    guard !source.isDirect else {
      return moveDirectly(position, to: source, roundTrip: now - probe.sentAt, at: now)
    }
    // The relay was asked while nothing was heard directly; if that has changed, the link stays.
    let isWhole =
      links[at: position].route.isDirect && liveness(position, at: now).lastAt > probe.sentAt
    return isWhole ? [] : move(position, to: source, at: now)
  }

  /// An answer to a challenge validates its path and measures it.
  private mutating func answered(
    _ position: Int, over route: Route, roundTrip: Duration, at now: Instant
  ) {
    paths.change(PathID(peer: links.keys[position].peer, route: route), at: now) { path in
      path.validated(at: now)
      path.measured(roundTrip)
    }
  }

  /// Asks the peer to answer over another route, to which the link then moves.
  public mutating func probe(
    _ link: SessionLinkID, over route: Route, now: Instant
  ) -> [Output] {
    guard route.mayLead(to: link.peer), let position = links.index(of: link) else { return [] }
    return challenge(position, route, at: now)
  }

  /// Discovery saw the peer while its link is quiet: both may have moved, so that neither hears the
  /// other, or the path between them works again. A peer that does not answer may have lost the
  /// session, as one does that left the channel and came back: it is offered a new one.
  mutating func probeIfQuiet(
    _ position: Int, _ route: Route, bootID: UInt64, at now: Instant
  ) -> [Output] {
    let link = links[at: position]
    // A direct path is better than a relayed one.
    if !link.route.isDirect, route.isDirect {
      return inducedChallenge(position, route, at: now)
    }
    // Another link may be heard over the same path, which says nothing of this session.
    let lastHeard = min(liveness(position, at: now).lastAt, link.lastHeard)
    guard now - lastHeard >= configuration.quietBeforeProbe else {
      return comparison(position, route, at: now)
    }
    links[at: position].pending?.route = route
    let isUnanswered = link.probedAt.map { now - $0 >= configuration.challengeInterval } ?? false
    // Only this node's own search leads to a relay.
    let challenges =
      route.isDirect
      ? inducedChallenge(position, route, at: now) : challenge(position, route, at: now)
    guard isUnanswered, link.pending == nil else { return challenges }
    return challenges + startHandshake(position, bootID: bootID, route: route, at: now)
  }

  // MARK: Comparing two paths

  /// The peer is at another address, too: both are challenged at the same moment, and the better one
  /// is taken.
  private mutating func comparison(
    _ position: Int, _ route: Route, at now: Instant
  ) -> [Output] {
    let link = links[at: position]
    guard let new = route.address, let old = link.route.address, new != old,
      link.comparison.map({ now - $0.startedAt >= configuration.comparisonInterval }) ?? true
    else { return [] }
    let comparison = PathComparison(
      address: new, newToken: entropy.u64(), oldToken: entropy.u64(), startedAt: now)
    links[at: position].comparison = comparison
    counters.challengesSent += 2
    return send(PathMessage.challenge(comparison.oldToken).encoded(), position, at: now)
      + send(PathMessage.challenge(comparison.newToken).encoded(), position, over: route, at: now)
  }

  /// Nil when the answer belongs to no comparison.
  private mutating func finishComparison(
    _ token: UInt64, _ position: Int, from source: Route, at now: Instant
  ) -> [Output]? {
    guard let address = source.address, let current = links[at: position].route.address,
      links[at: position].comparison?.take(token, from: address, current: current, at: now)
        ?? false,
      let comparison = links[at: position].comparison
    else { return nil }
    answered(position, over: source, roundTrip: now - comparison.startedAt, at: now)
    guard comparison.isWon(against: current) else { return [] }
    return moveDirectly(
      position, to: .direct(comparison.address), roundTrip: comparison.newRoundTrip ?? .zero,
      at: now)
  }
}
