import MusterBase
import MusterCrypto

/// One link's state: its sessions, its path and the handshake under way.
struct Link: Sendable {
  let id: SessionLinkID
  /// The peer's static key.
  let peerKey: Bytes32
  /// Where datagrams go. The path table counts this: only `LinkEngine.lead` changes it.
  private(set) var route: Route
  /// Which run of the peer the link stands with; nil before the first session.
  var bootID: UInt64?

  /// The session that seals.
  var current: Session?
  /// The one before, for datagrams still on their way.
  var previous: Session?
  /// Answered initiations that the initiator has not used yet, oldest first: at most
  /// `Limits.sessionsPerLink`, for an initiator that repeats itself before the answer arrives.
  var unconfirmed: [Session] = []

  /// This node's own handshake, while it is unanswered.
  var pending: PendingHandshake?
  /// While the peer may not know that the current session stands.
  var confirmation: Repeated?
  /// Challenges that are not answered yet, oldest first, one for each address.
  private(set) var probes: [Probe] = []
  /// Challenges that others bring about.
  var inducedProbes = TokenBucket(capacity: 2, perSecond: 1)
  /// The path in use against another one that was found.
  var comparison: PathComparison?

  /// Answers to challenges from elsewhere than the link's address.
  var pathAnswers = TokenBucket(capacity: 4, perSecond: 2)

  /// When anything authentic last came, over whichever path.
  var lastHeard: Instant
  /// Of this link alone, whose session ends when its peer hears nothing under it: what other links
  /// send over the same path keeps a NAT's mapping, but no session.
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

  /// A challenge sent, mostly over a new route.
  struct Probe: Sendable {
    let route: Route
    let token: UInt64
    let sentAt: Instant
  }

  /// An old and a new address, and one more way through somebody.
  private static let probeLimit = 3

  /// When a challenge that is not answered yet was last sent.
  var probedAt: Instant? { probes.last?.sentAt }

  mutating func begin(_ probe: Probe) {
    probes.removeAll { $0.route == probe.route }
    if probes.count >= Self.probeLimit,
      let oldest = probes.firstIndex(where: { $0.route != route })
    {
      probes.remove(at: oldest)
    }
    probes.append(probe)
  }

  /// The challenge that an answer is to. A direct answer ends all of them; one that came through
  /// somebody leaves those that may bring a better one.
  mutating func takeProbe(_ token: UInt64, from source: Route) -> Probe? {
    guard let probe = probes.first(where: { $0.token == token && $0.route == source }) else {
      return nil
    }
    probes.removeAll { source.isDirect || !$0.route.isDirect }
    return probe
  }

  mutating func endProbes() { probes = [] }

  /// Something that is done again and again, after ever longer times.
  struct Repeated: Sendable {
    var nextAt: Instant
    var delay: Duration
  }

  var isEstablished: Bool { bootID != nil }

  /// Whether nothing is left that could become a session.
  var isIdle: Bool { !isEstablished && pending == nil && unconfirmed.isEmpty }

  /// Whether a session of this index is in use or being confirmed.
  func slot(of index: UInt32) -> Slot? {
    if current?.localIndex == index { return .current }
    if previous?.localIndex == index { return .previous }
    return unconfirmed.firstIndex { $0.localIndex == index }.map { .unconfirmed($0) }
  }

  enum Slot: Equatable {
    case current, previous
    case unconfirmed(Int)
  }

  /// What became of a data datagram.
  enum Opened {
    case unknown, expired, forged, replayed
    /// `isElsewhere`: it is the newest of the session in use and came from a new address.
    case payload([UInt8], Slot, isElsewhere: Bool)
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
    case .payload(let payload, let isNewest):
      lastHeard = now
      if slot == .current { confirmation = nil }
      // An old datagram that comes late by another way says nothing of the path (RFC 9000 9.3).
      let isElsewhere = isNewest && slot != .previous && source != route
      return .payload(payload, slot, isElsewhere: isElsewhere)
    }
  }

  /// Seals under the session in use, for the path in use or another route; nil when there is none or its time is over.
  mutating func seal(
    _ header: [UInt8], _ body: ArraySlice<UInt8>, over other: Route?, at now: Instant,
    lifetime: Duration
  ) -> SealedDatagram? {
    guard let sealed = current?.seal(header, body, at: now, lifetime) else { return nil }
    lastSent = now
    return SealedDatagram(
      datagram: sealed.datagram, route: other ?? route, packetNumber: sealed.packetNumber)
  }

  /// Every index that leads to this link.
  var indices: [UInt32] {
    [current, previous].compactMap { $0?.localIndex } + unconfirmed.map(\.localIndex)
      + (pending?.attempts.map(\.localIndex) ?? [])
  }

  /// When a peer that is not heard is next asked to answer.
  func silenceProbeAt(_ configuration: LinkEngine.Configuration) -> Instant {
    let first = lastHeard + configuration.silenceProbeAfter
    // Whatever other ways are tried meanwhile: the one in use may be whole again.
    let last = probes.first { $0.route == route }?.sentAt
    return last.map { max(first, $0 + configuration.silenceProbeInterval) } ?? first
  }

  /// When `tick` next has something to do for this link.
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
    result = soonest(result, silenceProbeAt(configuration))
    return soonest(result, lastSent + keepaliveInterval)
  }
}

/// Initiations sent to one run of a peer and not answered yet.
struct PendingHandshake: Sendable {
  /// Initiations whose answers are still accepted: with the doubling waits these cover a round trip
  /// of more than a second.
  static let attemptLimit = 3
  /// A cookie that brings no answer after so many uses may be for another address: ask anew.
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
    /// Whether it bore a cookie: another one then waits for the next attempt in time.
    let hadCookie: Bool
    /// One answer with a cookie is taken: a replay of it asks for nothing.
    var hasCookieReply = false
  }

  /// The cookie for the next initiation, if there is one to use.
  mutating func takeCookie(at now: Instant, lifetime: Duration) -> [UInt8]? {
    guard let held = cookie else { return nil }
    let isFresh = now - held.receivedAt < lifetime && held.usesLeft > 0
    cookie = isFresh ? (held.bytes, held.usesLeft - 1, held.receivedAt) : nil
    return isFresh ? held.bytes : nil
  }
}

/// The initiations that one peer has had accepted: none is accepted again.
struct HandshakeMemory: Sendable {
  /// Runs of one peer that are told apart. Who has restarted more often within one run of this node
  /// could have its oldest initiations replayed, for an answer that is of no use to anyone.
  static let bootLimit = 32

  private var marks: [(bootID: UInt64, highest: UInt64)] = []
  private(set) var touchedAt = Instant.zero

  /// False when the counter is not above all before it.
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
