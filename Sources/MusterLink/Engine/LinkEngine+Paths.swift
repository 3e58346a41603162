import MusterBase
import MusterCrypto
import MusterWire

/// The path that a link's datagrams take: challenged before it is used, and changed for a better.
extension LinkEngine {
  mutating func handlePath(
    _ payload: [UInt8], _ position: Int, _ slot: Link.Slot, from source: Address, at now: Instant
  ) -> [Output] {
    guard let message = try? PathMessage(decoding: payload) else {
      counters.unknownPayloads += 1
      return []
    }
    switch message {
    case .challenge(let token):
      // Back to where it came from: that is the path in question (RFC 9000 8.2.2).
      guard source.isUnicast,
        source == links[at: position].address || links[at: position].pathAnswers.take(at: now)
      else { return [] }
      return send(PathMessage.response(token).encoded(), position, to: source, at: now)
    case .response(let token): return finishChallenge(token, position, from: source, at: now)
    case .close:
      // A late farewell under an earlier session does not end what was begun after it.
      return slot == .previous ? [] : remove(links[at: position].id, reason: .left)
    }
  }

  // MARK: Moving

  /// The newest datagram came from elsewhere. An address is challenged first; a neighbour that
  /// passed it on is known, so that whoever hears nothing of the peer itself just follows.
  mutating func follow(_ position: Int, to source: Address, at now: Instant) -> [Output] {
    guard source.relayed != nil else { return inducedChallenge(position, source, at: now) }
    let link = links[at: position]
    let mayFollow =
      if link.address.relayed == nil {
        now - link.liveness.lastAt >= configuration.quietBeforeRelayed
      } else {
        // Of two that choose at once, one has its way: else they would change places again and
        // again.
        identity.id > link.id.peer || link.liveness.lateAt <= now
      }
    return mayFollow ? move(position, to: source, at: now) : []
  }

  /// `roundTrip` of the new path, where it is known: nothing can come over it sooner than after
  /// two, since the other end has to follow first. One that slept in between, or took its time to
  /// answer, is not waited for as long.
  mutating func move(
    _ position: Int, to address: Address, roundTrip: Duration = .zero, at now: Instant
  ) -> [Output] {
    guard links[at: position].address != address else { return [] }
    links[at: position].address = address
    let patience = min(roundTrip, configuration.longestRoundTrip)
    links[at: position].liveness.restart(at: now + patience + patience)
    if links[at: position].pending?.bootID == links[at: position].bootID {
      links[at: position].pending?.address = address
    }
    return [.moved(links[at: position].id, to: address)]
  }

  // MARK: Challenges

  /// Others can bring about so many challenges of a link and no more.
  private mutating func inducedChallenge(
    _ position: Int, _ address: Address, at now: Instant
  ) -> [Output] {
    guard links[at: position].inducedProbes.take(at: now) else { return [] }
    return challenge(position, address, at: now)
  }

  /// Goes over to an address from which an answer came, and has the other end follow.
  private mutating func moveDirectly(
    _ position: Int, to address: Address, roundTrip: Duration, at now: Instant
  ) -> [Output] {
    let moved = move(position, to: address, roundTrip: roundTrip, at: now)
    return moved.isEmpty ? [] : moved + sendKeepalive(position, at: now)
  }

  /// Asks the peer whether it is really at an address; the old one stays in use meanwhile.
  mutating func challenge(
    _ position: Int, _ address: Address, at now: Instant
  ) -> [Output] {
    guard address.isUnicast else { return [] }
    let token = entropy.u64()
    links[at: position].begin(Link.Probe(address: address, token: token, sentAt: now))
    counters.challengesSent += 1
    return send(PathMessage.challenge(token).encoded(), position, to: address, at: now)
  }

  private mutating func finishChallenge(
    _ token: UInt64, _ position: Int, from source: Address, at now: Instant
  ) -> [Output] {
    if let moved = finishComparison(token, position, from: source, at: now) { return moved }
    guard let probe = links[at: position].takeProbe(token, from: source) else {
      counters.strayPathResponses += 1
      return []
    }
    let link = links[at: position]
    // The way through somebody was asked for while nothing was heard, which has changed.
    let isWhole = link.address.relayed == nil && link.liveness.lastAt > probe.sentAt
    guard source.relayed != nil else {
      return moveDirectly(position, to: source, roundTrip: now - probe.sentAt, at: now)
    }
    return isWhole ? [] : move(position, to: source, at: now)
  }

  /// Asks the peer to answer from another address, or by another way, to which the link then moves.
  public mutating func probe(_ link: SessionLinkID, at address: Address, now: Instant) -> [Output] {
    guard let position = links.index(of: link) else { return [] }
    return challenge(position, address, at: now)
  }

  /// Discovery saw the peer while its link is quiet: both may have moved, so that neither hears the
  /// other, or the way between them is whole again. A peer that does not answer may have lost the
  /// session, as one does that left the channel and came back: it is offered a new one.
  mutating func probeIfQuiet(
    _ position: Int, _ address: Address, bootID: UInt64, at now: Instant
  ) -> [Output] {
    let link = links[at: position]
    // A way of its own is better than one through somebody.
    if link.address.relayed != nil, address.relayed == nil {
      return inducedChallenge(position, address, at: now)
    }
    guard now - link.liveness.lastAt >= configuration.quietBeforeProbe else {
      return comparison(position, address, at: now)
    }
    links[at: position].pending?.address = address
    let isUnanswered = link.probedAt.map { now - $0 >= configuration.challengeInterval } ?? false
    // Nobody else brings it about that a neighbour is asked.
    let challenges =
      address.relayed != nil
      ? challenge(position, address, at: now) : inducedChallenge(position, address, at: now)
    guard isUnanswered, link.pending == nil else { return challenges }
    return challenges + startHandshake(position, bootID: bootID, address: address, at: now)
  }

  // MARK: Races

  /// The peer is at another address, too: which way is the better one shows when both are asked at
  /// the same moment.
  private mutating func comparison(_ position: Int, _ address: Address, at now: Instant) -> [Output]
  {
    let link = links[at: position]
    guard address != link.address, address.relayed == nil, link.address.relayed == nil,
      link.comparison.map({ now - $0.startedAt >= configuration.comparisonInterval }) ?? true
    else { return [] }
    let comparison = PathComparison(
      address: address, newToken: entropy.u64(), oldToken: entropy.u64(), startedAt: now)
    links[at: position].comparison = comparison
    counters.challengesSent += 2
    return send(PathMessage.challenge(comparison.oldToken).encoded(), position, at: now)
      + send(PathMessage.challenge(comparison.newToken).encoded(), position, to: address, at: now)
  }

  /// Nil when the answer belongs to no race.
  private mutating func finishComparison(
    _ token: UInt64, _ position: Int, from source: Address, at now: Instant
  ) -> [Output]? {
    let current = links[at: position].address
    guard
      links[at: position].comparison?.take(token, from: source, current: current, at: now) ?? false
    else { return nil }
    guard let comparison = links[at: position].comparison, comparison.isWon(against: current) else {
      return []
    }
    return moveDirectly(
      position, to: comparison.address, roundTrip: comparison.newRoundTrip ?? .zero, at: now)
  }
}

/// The round trips of two ways to a peer, measured at the same moment.
struct PathComparison: Equatable, Sendable {
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
