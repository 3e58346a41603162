import MusterBase
import MusterCrypto
import MusterWire

/// Path selection: a route is validated before the link moves to it (RFC 9000 section 9).
///
/// Both ends of a link use one path, because the end with the smaller id selects it and the other
/// end follows, like the controlling and the controlled agent of ICE (RFC 8445 section 2.3). An end
/// whose path has become silent leaves it in either role.
extension LinkEngine {
  /// Whether this end selects the path of a link.
  private func isControlling(_ position: Int) -> Bool { identity.id < links.keys[position].peer }

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
      guard source.isUnicast, mayAnswer(position, over: source, at: now) else { return [] }
      return send(PathMessage.response(token).encoded(), position, over: source, at: now)
        + suggestion(position, source, at: now)
    case .response(let token): return finishChallenge(token, position, from: source, at: now)
    case .close:
      // A late close message under the previous session does not affect the current session.
      return slot == .previous
        ? [] : remove(links[at: position].id, reason: .left, at: now)
    }
  }

  /// Answers over routes at which the peer has not been validated are limited, because the peer
  /// chooses their destination.
  private mutating func mayAnswer(
    _ position: Int, over source: Route, at now: Instant
  ) -> Bool {
    source == links[at: position].route
      || paths[PathID(peer: links.keys[position].peer, route: source)]?.validatedAt != nil
      || links[at: position].pathAnswers.take(at: now)
  }

  /// Compares the path in use with the one over which the following end sent a challenge: it may
  /// know of an address that this end has not discovered (RFC 8445 section 7.3.1.4: triggered
  /// checks).
  private mutating func suggestion(
    _ position: Int, _ source: Route, at now: Instant
  ) -> [Output] {
    isControlling(position) ? compareIfDue(position, source, at: now) : []
  }

  // MARK: Migration

  /// Handles the arrival of the newest datagram over a route other than the link's. A new address
  /// is challenged first; a relay is an authenticated member, so a link whose direct path is silent
  /// follows at once.
  mutating func follow(_ position: Int, to source: Route, at now: Instant) -> [Output] {
    guard !source.isDirect else { return followDirectly(position, to: source, at: now) }
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

  /// The controlling end keeps its path, which the peer will follow, unless that path has become
  /// silent: the peer has moved then.
  private mutating func followDirectly(
    _ position: Int, to source: Route, at now: Instant
  ) -> [Output] {
    let link = links[at: position]
    guard isControlling(position), link.route.isDirect else {
      return inducedChallenge(position, source, follows: true, at: now)
    }
    guard link.comparison.map({ !$0.isOpen(at: now) }) ?? true,
      links[at: position].inducedProbes.take(at: now)
    else { return [] }
    return compare(position, source, within: answerTime(of: position), at: now)
  }

  /// The time for the answer to a challenge over the path in use, after which the path counts as
  /// silent.
  private func answerTime(of position: Int) -> Duration {
    PathLiveness.answerTime(roundTrip: paths.roundTrip(links[at: position].path))
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
    counters.pathsChanged += 1
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
    _ position: Int, _ route: Route, follows: Bool = false, at now: Instant
  ) -> [Output] {
    guard links[at: position].inducedProbes.take(at: now) else { return [] }
    return challenge(position, route, follows: follows, at: now)
  }

  /// Moves to a validated route and sends a keepalive over that route, which makes the peer follow.
  private mutating func moveDirectly(
    _ position: Int, to route: Route, roundTrip: Duration, at now: Instant
  ) -> [Output] {
    let moved = move(position, to: route, roundTrip: roundTrip, at: now)
    return moved.isEmpty ? [] : moved + sendKeepalive(position, at: now)
  }

  /// Sends a path challenge over a route, while the current route stays in use. `follows` means
  /// that the peer was seen to use the route.
  mutating func challenge(
    _ position: Int, _ route: Route, follows: Bool = false, at now: Instant
  ) -> [Output] {
    guard route.isUnicast else { return [] }
    let token = entropy.u64()
    links[at: position].begin(
      Link.Probe(route: route, token: token, sentAt: now, follows: follows))
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
    // The route was challenged while the direct path was silent; if that path has recovered, the
    // link stays on it, unless the peer has left it.
    let isWhole =
      links[at: position].route.isDirect && liveness(position, at: now).lastAt > probe.sentAt
    guard !isWhole || probe.follows else { return [] }
    guard source.isDirect else { return move(position, to: source, at: now) }
    return moveDirectly(position, to: source, roundTrip: now - probe.sentAt, at: now)
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

  /// Asks a peer that has become quiet whether its path still works. The other direct path over
  /// which the peer was last reached is challenged as well, and used if only that one answers.
  public mutating func check(_ link: SessionLinkID, at now: Instant) -> [Output] {
    guard let position = links.index(of: link), links[at: position].isEstablished else { return [] }
    let path = links[at: position].path
    guard path.route.isDirect, let other = paths.alternative(to: path) else {
      return challenge(position, path.route, at: now)
    }
    return compare(
      position, .direct(other), within: answerTime(of: position), at: now)
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
      return compareIfDue(position, route, at: now)
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

  /// Compares the path in use with another address of the peer, unless the last comparison was
  /// recent.
  private mutating func compareIfDue(
    _ position: Int, _ route: Route, at now: Instant
  ) -> [Output] {
    guard let new = route.address,
      links[at: position].comparison.map({ now >= $0.end(for: new, configuration) }) ?? true
    else { return [] }
    return compare(position, route, within: configuration.comparisonPatience, at: now)
  }

  /// Challenges the path in use and another address of the peer at the same time. The controlling
  /// end uses the better path; either end leaves a path that stays silent for `patience`.
  private mutating func compare(
    _ position: Int, _ route: Route, within patience: Duration, at now: Instant
  ) -> [Output] {
    guard let new = route.address, let old = links[at: position].route.address, new != old else {
      return []
    }
    let comparison = PathComparison(
      address: new, newToken: entropy.u64(), oldToken: entropy.u64(), startedAt: now,
      patience: patience)
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
    guard isControlling(position), comparison.isWon(against: current) else { return [] }
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
