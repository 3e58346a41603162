import MusterBase
import MusterCrypto
import MusterWire

/// Path selection: a route is validated before the link moves to it (RFC 9000 section 9).
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
      // The response is sent over the route of the challenge, because the challenge is to validate
      // that route (RFC 9000 section 8.2.2).
      guard source.isUnicast,
        source == links[at: position].route || links[at: position].pathAnswers.take(at: now)
      else { return [] }
      return send(PathMessage.response(token).encoded(), position, over: source, at: now)
    case .response(let token): return finishChallenge(token, position, from: source, at: now)
    case .close:
      // A late close message under the previous session does not affect the current session.
      return slot == .previous
        ? [] : remove(links[at: position].id, reason: .left, at: now)
    }
  }

  // MARK: Migration

  /// Handles the arrival of the newest datagram over a route other than the link's. A new address
  /// is challenged first; a relay is an authenticated member, so a link whose direct path is silent
  /// follows at once.
  mutating func follow(_ position: Int, to source: Route, at now: Instant) -> [Output] {
    guard !source.isDirect else { return inducedChallenge(position, source, at: now) }
    let link = links[at: position]
    let liveness = liveness(position, at: now)
    let mayFollow =
      if link.route.isDirect {
        now - liveness.lastAt >= configuration.quietBeforeRelayed
          && link.leftRelayAt.map { now - $0 >= Self.timeToFollow } ?? true
      } else {
        // If both ends choose different relays at once, both use the choice of the node with the
        // smaller id; otherwise both would keep swapping routes.
        identity.id > link.id.peer || liveness.lateAt <= now
      }
    return mayFollow ? move(position, to: source, at: now) : []
  }

  /// The time after a move from a relayed to a direct path within which the link does not follow
  /// its peer back: until the peer may challenge the direct path again (`Link.inducedProbes`), and
  /// a round trip more. Meanwhile the path works in both directions, as the response has shown; if
  /// the link returned to the relay, the two nodes could keep exchanging their routes.
  private static let timeToFollow = Duration.milliseconds(1500)

  private func liveness(_ position: Int, at now: Instant) -> PathLiveness {
    paths[links[at: position].path]?.liveness ?? PathLiveness(at: now)
  }

  /// Moves a link to another route. `roundTrip` is the round trip of the new path, if known; the
  /// first datagram over the new path arrives after two round trips at the earliest, because the
  /// peer must follow first. The value is bounded, because a suspended peer may have delayed its
  /// answer.
  mutating func move(
    _ position: Int, to route: Route, roundTrip: Duration = .zero, at now: Instant
  ) -> [Output] {
    guard links[at: position].route != route else { return [] }
    if !links[at: position].route.isDirect, route.isDirect {
      links[at: position].leftRelayAt = now
    }
    lead(position, over: route, at: now)
    let patience = min(roundTrip, configuration.longestRoundTrip)
    paths.change(links[at: position].path, at: now) {
      $0.liveness.restart(at: now + patience + patience)
    }
    if links[at: position].pending?.bootID == links[at: position].bootID {
      links[at: position].pending?.route = route
    }
    schedule(position)
    return [.moved(links[at: position].id, to: route)]
  }

  // MARK: Challenges

  /// Challenges a route in response to a received datagram, within the rate limit.
  private mutating func inducedChallenge(
    _ position: Int, _ route: Route, at now: Instant
  ) -> [Output] {
    guard links[at: position].inducedProbes.take(at: now) else { return [] }
    return challenge(position, route, at: now)
  }

  /// Moves to a validated route and sends a keepalive over that route, which makes the peer follow.
  private mutating func moveDirectly(
    _ position: Int, to route: Route, roundTrip: Duration, at now: Instant
  ) -> [Output] {
    let moved = move(position, to: route, roundTrip: roundTrip, at: now)
    return moved.isEmpty ? [] : moved + sendKeepalive(position, at: now)
  }

  /// Sends a path challenge over a route, while the current route stays in use.
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
    // Once a challenge is answered, the next silence probe may be due earlier.
    schedule(position)
    guard !source.isDirect else {
      return moveDirectly(position, to: source, roundTrip: now - probe.sentAt, at: now)
    }
    // The relay was challenged while the direct path was silent; if that path has recovered, the
    // link stays on it.
    let isWhole =
      links[at: position].route.isDirect && liveness(position, at: now).lastAt > probe.sentAt
    return isWhole ? [] : move(position, to: source, at: now)
  }

  /// Marks the path of a response as validated and takes a round-trip sample.
  private mutating func answered(
    _ position: Int, over route: Route, roundTrip: Duration, at now: Instant
  ) {
    paths.change(PathID(peer: links.keys[position].peer, route: route), at: now) { path in
      path.validated(at: now)
      path.measured(roundTrip)
    }
  }

  /// Challenges another route; the link moves to that route once the peer responds.
  public mutating func probe(
    _ link: SessionLinkID, over route: Route, now: Instant
  ) -> [Output] {
    guard route.mayLead(to: link.peer), let position = links.index(of: link) else { return [] }
    return challenge(position, route, at: now)
  }

  /// Probes a route at which discovery saw the peer while its link is silent: both nodes may have
  /// moved, or the path may have recovered. A peer that does not respond may have lost the session,
  /// for example by leaving and rejoining the channel, and is offered a new session. If the link is
  /// not silent, its path is compared with the route instead.
  mutating func probeIfQuiet(
    _ position: Int, _ route: Route, bootID: UInt64, at now: Instant
  ) -> [Output] {
    let link = links[at: position]
    // Direct paths take precedence over relayed paths.
    if !link.route.isDirect, route.isDirect {
      return inducedChallenge(position, route, at: now)
    }
    // Traffic of other links over the same path does not prove that this session is alive.
    let lastHeard = min(liveness(position, at: now).lastAt, link.lastHeard)
    guard now - lastHeard >= configuration.quietBeforeProbe else {
      return comparison(position, route, at: now)
    }
    links[at: position].pending?.route = route
    // Measured from the first of them: the silence probes repeat every 2 s, and the latest one is
    // often more recent than the limit.
    let isUnanswered =
      link.unansweredSince.map { now - $0 >= configuration.challengeInterval } ?? false
    // A relayed route results from this node's own search, so its challenge needs no rate limit.
    let challenges =
      route.isDirect
      ? inducedChallenge(position, route, at: now) : challenge(position, route, at: now)
    guard isUnanswered, link.pending == nil else { return challenges }
    return challenges + startHandshake(position, bootID: bootID, route: route, at: now)
  }

  // MARK: Path comparison

  /// Compares the path in use with another address of the peer: both are challenged at the same
  /// time, and the better path is used.
  private mutating func comparison(
    _ position: Int, _ route: Route, at now: Instant
  ) -> [Output] {
    let link = links[at: position]
    guard let new = route.address, let old = link.route.address, new != old,
      link.comparison.map({ now >= $0.end(for: new, configuration) }) ?? true
    else { return [] }
    let comparison = PathComparison(
      address: new, newToken: entropy.u64(), oldToken: entropy.u64(), startedAt: now)
    links[at: position].comparison = comparison
    counters.challengesSent += 2
    return send(PathMessage.challenge(comparison.oldToken).encoded(), position, at: now)
      + send(PathMessage.challenge(comparison.newToken).encoded(), position, over: route, at: now)
  }

  /// Handles a response that belongs to the link's path comparison; nil if the response does not.
  private mutating func finishComparison(
    _ token: UInt64, _ position: Int, from source: Route, at now: Instant
  ) -> [Output]? {
    guard let address = source.address, let current = links[at: position].route.address,
      links[at: position].comparison?.take(token, from: address, current: current, at: now)
        ?? false,
      let comparison = links[at: position].comparison
    else { return nil }
    answered(position, over: source, roundTrip: now - comparison.startedAt, at: now)
    schedule(position)
    guard comparison.isWon(against: current) else { return [] }
    return moveDirectly(
      position, to: .direct(comparison.address), roundTrip: comparison.newRoundTrip ?? .zero,
      at: now)
  }

  /// Leaves a direct path over which nothing has arrived since its comparison with a path that
  /// responded: the peer may have moved, and does not know which of its addresses is reachable.
  mutating func tickComparison(_ position: Int, at now: Instant) -> [Output] {
    let link = links[at: position]
    guard let comparison = link.comparison, let end = comparison.endsAt, end <= now else {
      return []
    }
    links[at: position].comparison?.end()
    guard link.route.isDirect, liveness(position, at: now).lastAt <= comparison.startedAt else {
      return []
    }
    return moveDirectly(
      position, to: .direct(comparison.address), roundTrip: comparison.newRoundTrip ?? .zero,
      at: now)
  }
}
