import MusterBase
import MusterCrypto
import MusterWire

/// The path that a link's datagrams take: challenged before it is used, and changed for a better.
extension LinkEngine {
  mutating func handlePath(
    _ payload: [UInt8], _ place: Int, _ slot: Link.Slot, from source: Address, at now: Instant
  ) -> [Output] {
    guard let message = try? PathMessage(decoding: payload) else {
      counters.unknownPayloads += 1
      return []
    }
    switch message {
    case .challenge(let token):
      // Back to where it came from: that is the path in question (RFC 9000 8.2.2).
      guard source.isUnicast,
        source == links[at: place].address || links[at: place].pathAnswers.take(at: now)
      else { return [] }
      return send(PathMessage.response(token).encoded(), place, to: source, at: now)
    case .response(let token): return finishChallenge(token, place, from: source, at: now)
    case .close:
      // A late farewell under an earlier session does not end what was begun after it.
      return slot == .previous ? [] : remove(links[at: place].id, reason: .left)
    }
  }

  // MARK: Moving

  /// The newest datagram came from elsewhere. An address is challenged first; a neighbour that
  /// passed it on is known, so that whoever hears nothing of the peer itself just follows.
  mutating func follow(_ place: Int, to source: Address, at now: Instant) -> [Output] {
    guard source.detour != nil else { return inducedChallenge(place, source, at: now) }
    let link = links[at: place]
    let mayFollow =
      if link.address.detour == nil {
        now - link.pulse.lastAt >= configuration.quietBeforeDetour
      } else {
        // Of two that choose at once, one has its way: else they would change places again and
        // again.
        identity.id > link.id.peer || link.pulse.lateAt <= now
      }
    return mayFollow ? move(place, to: source, at: now) : []
  }

  /// `roundTrip` of the new path, where it is known: nothing can come over it sooner than after
  /// two, since the other end has to follow first. One that slept in between, or took its time to
  /// answer, is not waited for as long.
  mutating func move(
    _ place: Int, to address: Address, roundTrip: Duration = .zero, at now: Instant
  ) -> [Output] {
    guard links[at: place].address != address else { return [] }
    links[at: place].address = address
    let patience = min(roundTrip, configuration.longestRoundTrip)
    links[at: place].pulse.restart(at: now + patience + patience)
    if links[at: place].pending?.bootID == links[at: place].bootID {
      links[at: place].pending?.address = address
    }
    return [.moved(links[at: place].id, to: address)]
  }

  // MARK: Challenges

  /// Others can bring about so many challenges of a link and no more.
  private mutating func inducedChallenge(
    _ place: Int, _ address: Address, at now: Instant
  ) -> [Output] {
    guard links[at: place].inducedProbes.take(at: now) else { return [] }
    return challenge(place, address, at: now)
  }

  /// Goes over to an address from which an answer came, and has the other end follow.
  private mutating func moveDirectly(
    _ place: Int, to address: Address, roundTrip: Duration, at now: Instant
  ) -> [Output] {
    let moved = move(place, to: address, roundTrip: roundTrip, at: now)
    return moved.isEmpty ? [] : moved + sendKeepalive(place, at: now)
  }

  /// Asks the peer whether it is really at an address; the old one stays in use meanwhile.
  mutating func challenge(
    _ place: Int, _ address: Address, at now: Instant
  ) -> [Output] {
    guard address.isUnicast else { return [] }
    let token = entropy.u64()
    links[at: place].begin(Link.Probe(address: address, token: token, sentAt: now))
    counters.challengesSent += 1
    return send(PathMessage.challenge(token).encoded(), place, to: address, at: now)
  }

  private mutating func finishChallenge(
    _ token: UInt64, _ place: Int, from source: Address, at now: Instant
  ) -> [Output] {
    if let moved = finishRace(token, place, from: source, at: now) { return moved }
    guard let probe = links[at: place].takeProbe(token, from: source) else {
      counters.strayPathResponses += 1
      return []
    }
    let link = links[at: place]
    // The way through somebody was asked for while nothing was heard, which has changed.
    let isWhole = link.address.detour == nil && link.pulse.lastAt > probe.sentAt
    guard source.detour != nil else {
      return moveDirectly(place, to: source, roundTrip: now - probe.sentAt, at: now)
    }
    return isWhole ? [] : move(place, to: source, at: now)
  }

  /// Asks the peer to answer from another address, or by another way, to which the link then moves.
  public mutating func probe(_ link: LinkID, at address: Address, now: Instant) -> [Output] {
    guard let place = links.index(of: link) else { return [] }
    return challenge(place, address, at: now)
  }

  /// Discovery saw the peer while its link is quiet: both may have moved, so that neither hears the
  /// other, or the way between them is whole again. A peer that does not answer may have lost the
  /// session, as one does that left the channel and came back: it is offered a new one.
  mutating func probeIfQuiet(
    _ place: Int, _ address: Address, bootID: UInt64, at now: Instant
  ) -> [Output] {
    let link = links[at: place]
    // A way of its own is better than one through somebody.
    if link.address.detour != nil, address.detour == nil {
      return inducedChallenge(place, address, at: now)
    }
    guard now - link.pulse.lastAt >= configuration.quietBeforeProbe else {
      return race(place, address, at: now)
    }
    links[at: place].pending?.address = address
    let isUnanswered = link.probedAt.map { now - $0 >= configuration.challengeInterval } ?? false
    // Nobody else brings it about that a neighbour is asked.
    let challenges =
      address.detour != nil
      ? challenge(place, address, at: now) : inducedChallenge(place, address, at: now)
    guard isUnanswered, link.pending == nil else { return challenges }
    return challenges + startHandshake(place, bootID: bootID, address: address, at: now)
  }

  // MARK: Races

  /// The peer is at another address, too: which way is the better one shows when both are asked at
  /// the same moment.
  private mutating func race(_ place: Int, _ address: Address, at now: Instant) -> [Output] {
    let link = links[at: place]
    guard address != link.address, address.detour == nil, link.address.detour == nil,
      link.race.map({ now - $0.startedAt >= configuration.raceInterval }) ?? true
    else { return [] }
    let race = PathRace(
      address: address, newToken: entropy.u64(), oldToken: entropy.u64(), startedAt: now)
    links[at: place].race = race
    counters.challengesSent += 2
    return send(PathMessage.challenge(race.oldToken).encoded(), place, at: now)
      + send(PathMessage.challenge(race.newToken).encoded(), place, to: address, at: now)
  }

  /// Nil when the answer belongs to no race.
  private mutating func finishRace(
    _ token: UInt64, _ place: Int, from source: Address, at now: Instant
  ) -> [Output]? {
    let current = links[at: place].address
    guard links[at: place].race?.take(token, from: source, current: current, at: now) ?? false
    else { return nil }
    guard let race = links[at: place].race, race.isWon(against: current) else { return [] }
    return moveDirectly(
      place, to: race.address, roundTrip: race.newRoundTrip ?? .zero, at: now)
  }
}

/// The round trips of two ways to a peer, measured at the same moment.
struct PathRace: Equatable, Sendable {
  let address: Address
  let newToken: UInt64
  let oldToken: UInt64
  let startedAt: Instant
  private(set) var newRoundTrip: Duration?
  private var old: Duration?

  /// Less than this is chance.
  private static let margin = Duration.milliseconds(3)

  init(address: Address, newToken: UInt64, oldToken: UInt64, startedAt: Instant) {
    self.address = address
    self.newToken = newToken
    self.oldToken = oldToken
    self.startedAt = startedAt
  }

  /// Whether it was an answer to this race.
  mutating func take(
    _ token: UInt64, from source: Address, current: Address, at now: Instant
  ) -> Bool {
    if token == newToken, source == address {
      newRoundTrip = newRoundTrip ?? now - startedAt
    } else if token == oldToken, source == current {
      old = old ?? now - startedAt
    } else {
      return false
    }
    return true
  }

  /// Whether the new way is better: by a good part faster, or nearer and no slower. The two rules
  /// leave no pair of ways of which each is better than the other.
  func isWon(against current: Address) -> Bool {
    guard let new = newRoundTrip, let old else { return false }
    let isNearer = address.reach < current.reach
    return new * 1.5 + Self.margin < old || isNearer && new <= old + Self.margin
  }
}
