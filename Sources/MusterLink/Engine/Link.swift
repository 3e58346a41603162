import MusterBase
import MusterCrypto
import MusterWire

/// The state of one link: its sessions, its route and the handshake in progress.
struct Link: Sendable {
  let id: SessionLinkID
  /// The peer's static X25519 key.
  let peerKey: Bytes32
  /// The route of outgoing datagrams. Only `LinkEngine.lead` changes the route, because the path
  /// table counts the links that use each path.
  private(set) var route: Route
  /// The run of the peer that the link belongs to; nil before the first session.
  var bootID: UInt64?

  /// The session that outgoing datagrams are sealed under.
  var current: Session?
  /// The previous session, for datagrams still in flight.
  var previous: Session?
  /// Answered initiations that the initiator has not confirmed, oldest first, at most
  /// `Limits.sessionsPerLink`: an initiator may repeat its initiation before the answer arrives.
  var unconfirmed: [Session] = []

  /// The handshake that this node has initiated; nil if none is in progress.
  var pending: PendingHandshake?
  /// The repetition of the keepalive that confirms the current session; nil once the peer is known
  /// to have the session.
  var confirmation: Repeated?
  /// Unanswered path challenges, oldest first, at most one per route.
  private(set) var probes: [Probe] = []
  /// The time of the last move from a relayed to a direct path; nil if there was none.
  var leftRelayAt: Instant?
  /// The rate limit for challenges that received datagrams cause.
  var inducedProbes = TokenBucket(capacity: 2, perSecond: 1)
  /// The latest comparison of the path in use with another path; nil before the first comparison.
  var comparison: PathComparison?

  /// The rate limit for answers to challenges that arrive over a route other than the link's.
  var pathAnswers = TokenBucket(capacity: 4, perSecond: 2)

  /// The time at which the last authentic datagram arrived, over any path.
  var lastHeard: Instant
  /// The time at which this link last sent a datagram. Kept per link, because each session needs
  /// its own keepalives: the traffic of other links over the same path keeps the NAT mapping alive,
  /// but not the session.
  var lastSent: Instant
  var keepaliveInterval: Duration

  init(id: SessionLinkID, peerKey: Bytes32, route: Route, at now: Instant, keepalive: Duration) {
    self.id = id
    self.peerKey = peerKey
    self.route = route
    lastHeard = now
    lastSent = now
    keepaliveInterval = keepalive
  }

  /// The path in use.
  var path: PathID { PathID(peer: id.peer, route: route) }

  mutating func lead(over route: Route) { self.route = route }

  /// A path challenge that was sent, usually over a new route.
  struct Probe: Sendable {
    let route: Route
    let token: UInt64
    let sentAt: Instant
    /// Whether the peer was seen to use the route, which a response makes the link follow.
    let follows: Bool
    /// The time at which the first of consecutive unanswered challenges over the route was sent.
    var unansweredSince: Instant

    init(route: Route, token: UInt64, sentAt: Instant, follows: Bool) {
      self.route = route
      self.token = token
      self.sentAt = sentAt
      self.follows = follows
      unansweredSince = sentAt
    }
  }

  /// The maximum number of unanswered challenges: an old and a new address, and one relayed route.
  private static let probeLimit = 3

  /// The time since which challenges have been unanswered; nil if none is outstanding.
  var unansweredSince: Instant? { probes.map(\.unansweredSince).min() }

  mutating func begin(_ next: Probe) {
    var probe = next
    if let former = probes.first(where: { $0.route == probe.route }) {
      probe.unansweredSince = former.unansweredSince
    }
    probes.removeAll { $0.route == probe.route }
    if probes.count >= Self.probeLimit,
      let oldest = probes.firstIndex(where: { $0.route != route })
    {
      probes.remove(at: oldest)
    }
    probes.append(probe)
  }

  /// Removes and returns the challenge that matches a response. A response over a direct route
  /// cancels all challenges; a response over a relay leaves challenges over direct routes
  /// outstanding, because direct routes are preferred.
  mutating func takeProbe(_ token: UInt64, from source: Route) -> Probe? {
    guard let probe = probes.first(where: { $0.token == token && $0.route == source }) else {
      return nil
    }
    probes.removeAll { source.isDirect || !$0.route.isDirect }
    return probe
  }

  mutating func endProbes() { probes = [] }

  /// The state of an exponential backoff.
  struct Repeated: Sendable {
    var nextAt: Instant
    var delay: Duration
  }

  var isEstablished: Bool { bootID != nil }

  /// Whether the link has neither a session nor a handshake that may lead to one.
  var isIdle: Bool { !isEstablished && pending == nil && unconfirmed.isEmpty }

  /// The slot of the session with this local index; nil if the link has no such session.
  func slot(of index: UInt32) -> Slot? {
    if current?.localIndex == index { return .current }
    if previous?.localIndex == index { return .previous }
    return unconfirmed.firstIndex { $0.localIndex == index }.map { .unconfirmed($0) }
  }

  enum Slot: Equatable {
    case current, previous
    case unconfirmed(Int)
  }

  /// The result of opening a transport packet.
  enum Opened {
    case unknown, expired, forged, replayed
    /// `isElsewhere` means that the packet arrived over a route other than the link's and has the
    /// highest counter of its session so far; always false under the previous session.
    case payload([UInt8], Slot, LinkCapabilities, isElsewhere: Bool)
  }

  mutating func open(
    _ datagram: [UInt8], _ header: DataHeader, from source: Route, at now: Instant,
    lifetime: Duration
  ) -> Opened {
    guard let slot = slot(of: header.receiverIndex) else { return .unknown }
    let result: Session.Opened
    switch slot {
    case .current:
      result = current?.open(datagram, header.counter, at: now, lifetime) ?? .expired
    case .previous:
      result = previous?.open(datagram, header.counter, at: now, lifetime) ?? .expired
    case .unconfirmed(let position):
      result = unconfirmed[position].open(datagram, header.counter, at: now, lifetime)
    }
    switch result {
    case .expired: return .expired
    case .forged: return .forged
    case .replayed: return .replayed
    case .payload(let payload, let capabilities, let isNewest):
      lastHeard = now
      if slot == .current { confirmation = nil }
      // A reordered old datagram does not show that the peer has moved (RFC 9000 section 9.3).
      let isElsewhere = isNewest && slot != .previous && source != route
      return .payload(payload, slot, capabilities, isElsewhere: isElsewhere)
    }
  }

  /// Seals a payload under the current session, for the route `other`, or for the link's route if
  /// `other` is nil. Nil without an unexpired session.
  mutating func seal(
    _ payload: OutgoingPayload, over other: Route?, at now: Instant, lifetime: Duration
  ) -> SealedDatagram? {
    let route = other ?? route
    guard let sealed = current?.seal(payload, over: route, at: now, lifetime) else { return nil }
    lastSent = now
    return sealed
  }

  /// The local indices of this link's sessions and unanswered initiations.
  var indices: [UInt32] {
    var indices: [UInt32] = []
    forEachIndex { indices.append($0) }
    return indices
  }

  /// Calls `body` with each of `indices`, without allocating an array.
  func forEachIndex(_ body: (UInt32) -> Void) {
    if let current { body(current.localIndex) }
    if let previous { body(previous.localIndex) }
    for session in unconfirmed { body(session.localIndex) }
    for attempt in pending?.attempts ?? [] { body(attempt.localIndex) }
  }

  /// The time at which a silent peer is next challenged.
  func silenceProbeAt(_ configuration: LinkEngine.Configuration) -> Instant {
    let first = lastHeard + configuration.silenceProbeAfter
    // The route in use is challenged regardless of other challenges, because it may have recovered.
    let last = probes.first { $0.route == route }?.sentAt
    return last.map { max(first, $0 + configuration.silenceProbeInterval) } ?? first
  }

  /// The time at which `tick` next has work for this link.
  func deadline(_ configuration: LinkEngine.Configuration) -> Instant? {
    var result = soonest(
      pending?.nextAt, pending.map { $0.startedAt + configuration.handshakeGiveUp })
    for session in unconfirmed {
      result = soonest(result, session.createdAt + configuration.confirmWithin)
    }
    result = soonest(result, previous.map { $0.createdAt + configuration.rejectAfter })
    guard isEstablished else { return result }
    result = soonest(result, lastHeard + configuration.silenceLimit)
    guard let current else { return result }
    result = soonest(result, current.createdAt + configuration.rejectAfter)
    if pending == nil { result = soonest(result, current.rekeyAt(configuration)) }
    result = soonest(result, confirmation?.nextAt)
    result = soonest(result, comparison?.endsAt)
    result = soonest(result, silenceProbeAt(configuration))
    return soonest(result, lastSent + keepaliveInterval)
  }
}

/// Unanswered initiations to one run of a peer.
struct PendingHandshake: Sendable {
  /// The number of initiations whose responses are still accepted; with the doubling intervals,
  /// three attempts cover a round trip of more than a second.
  static let attemptLimit = 3
  /// The number of uses without a response after which a cookie is discarded, because the cookie
  /// may be bound to another address; a new cookie is then requested.
  static let cookieUses = 2

  let bootID: UInt64
  var route: Route
  let startedAt: Instant
  var nextAt: Instant
  var delay: Duration
  var attempts: [Attempt] = []
  var cookie: (bytes: [UInt8], usesLeft: Int, receivedAt: Instant)?

  struct Attempt: Sendable {
    let localIndex: UInt32
    let handshake: HandshakeState
    let mac1: [UInt8]
    /// Whether the attempt carried a cookie; a cookie in the reply is then used only for the next
    /// scheduled attempt.
    let hadCookie: Bool
    /// The route that the attempt was sent over.
    let route: Route
    /// Whether a cookie reply was accepted: only one is accepted per attempt, so that a replay has
    /// no effect.
    var hasCookieReply = false
  }

  /// The cookie for the next initiation; nil if there is no cookie, or the cookie is used up or
  /// expired.
  mutating func takeCookie(at now: Instant, lifetime: Duration) -> [UInt8]? {
    guard let held = cookie else { return nil }
    let isFresh = now - held.receivedAt < lifetime && held.usesLeft > 0
    cookie = isFresh ? (held.bytes, held.usesLeft - 1, held.receivedAt) : nil
    return isFresh ? held.bytes : nil
  }
}

/// The highest initiation counter of each run of a peer; equal and lower counters are replays.
struct HandshakeMemory: Sendable {
  /// The number of tracked runs of one peer. If a peer restarts more often, its oldest initiations
  /// could be replayed, but the responses would be of no use to an attacker.
  static let bootLimit = 32

  private var marks: [(bootID: UInt64, highest: UInt64)] = []
  private(set) var touchedAt = Instant.zero

  /// Records an initiation counter. Returns false, because the initiation is a replay, unless the
  /// counter is greater than every earlier counter with this boot id.
  mutating func accept(bootID: UInt64, counter: UInt64, at now: Instant) -> Bool {
    if let position = marks.firstIndex(where: { $0.bootID == bootID }) {
      guard counter > marks[position].highest else { return false }
      marks[position].highest = counter
    } else {
      if marks.count == Self.bootLimit { marks.removeFirst() }
      marks.append((bootID, counter))
    }
    touchedAt = now
    return true
  }
}
