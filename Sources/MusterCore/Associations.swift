import MusterBase
import MusterLink

/// The associations of this node with its peers, one for each channel and peer, and the session
/// links that carry them.
///
/// An association outlives its sessions: when the channel's key changes, the same two nodes make a
/// session link under the new key, and the former one drains. Every session link has one role, and
/// the phase of an association follows from the roles of its sessions, so that the two cannot
/// disagree.
struct Associations: ~Copyable, Sendable {
  /// The outputs for an input, in order.
  enum Output: Equatable, Sendable {
    /// The association can be used: the host calls `begin`.
    case up(SessionLinkID, LinkID, bootID: UInt64, over: Route)
    /// It cannot be used any more: the host ends what is attached to it, then calls `end`.
    case down(LinkID, LinkCloseReason)
    /// End a session link, telling the peer so.
    case close(SessionLinkID)
    /// Make a link to this run of the peer.
    case connect(LinkID, bootID: UInt64, over: Route)
    /// Offer the key in force over a restricted session link, or say why not.
    case serve(SessionLinkID)
  }

  /// The role of a session link.
  enum Role: Equatable, Sendable {
    /// It carries the association.
    case current
    /// Another one carries the association: it ends at this time.
    case draining(until: Instant)
    case suspended(Suspension)
    case restricted
  }

  /// A session that is kept although its peer counts as gone.
  struct Suspension: Equatable, Sendable {
    let since: Instant
    let bootID: UInt64
    let route: Route
  }

  /// The state of a session link while it is restricted.
  struct Restriction: Sendable {
    let since: Instant
    let bootID: UInt64
    var nextAt: Instant
    /// Credentials that the peer may show.
    var credentials = TokenBucket(capacity: 16, perSecond: 2)
  }

  /// Why a peer is not connected to for a while.
  struct Refusal: Equatable, Sendable {
    var until: Instant
    /// The peer refused this node, and not this node the peer.
    var isByPeer: Bool
  }

  /// What the node knows about the key and the peer of a new session link.
  struct Standing {
    var isKeyCurrent: Bool
    /// The peer is known to be no member.
    var isNonMember: Bool
    /// Whether there is room for one more link in the channel.
    var hasRoom: Bool
  }

  /// The time for which two session links of one association coexist after a key change.
  static let drainTime = Duration.seconds(5)
  static let restrictedTime = Duration.seconds(8)
  /// Between two offers of a key.
  static let keyRepeat = Duration.seconds(1)
  /// How long a handshake may take, as the link engine gives it up.
  static let connectTime = LinkEngine.Configuration().handshakeGiveUp

  /// The associations in use: active, rekeying or draining.
  var peers = DeadlineTable<LinkID, Peer>()
  private(set) var sessions = PeerTable<SessionLinkID, (channel: ChannelID, role: Role)>()
  private var restrictions = PeerTable<SessionLinkID, Restriction>()
  private var refusals = PeerTable<LinkID, Refusal>()
  /// Handshakes that this node began, and when they are given up.
  private var connecting = PeerTable<LinkID, Instant>()
  /// When `tick` next has work.
  private(set) var deadline: Instant?
  /// Whether a session is suspended: each datagram may be from its peer.
  private(set) var hasSuspended = false

  // MARK: Queries

  /// The session link that carries an association in use.
  func session(of link: LinkID) -> SessionLinkID? {
    peers.index(of: link).map { SessionLinkID(key: peers[at: $0].key, peer: link.peer) }
  }

  /// The association in use that a session link belongs to: what comes over it counts.
  func usedLink(of session: SessionLinkID) -> LinkID? {
    guard let index = sessions.index(of: session) else { return nil }
    let link = LinkID(channel: sessions[at: index].channel, peer: session.peer)
    switch sessions[at: index].role {
    case .current, .draining: return peers.index(of: link) == nil ? nil : link
    case .suspended, .restricted: return nil
    }
  }

  func isRestricted(_ session: SessionLinkID) -> Bool { restrictions.index(of: session) != nil }

  func restriction(of session: SessionLinkID) -> Restriction? { restrictions[session] }

  /// Every association that has a phase, in the order of links.
  func phases(at now: Instant) -> [(link: LinkID, phase: AssociationPhase)] {
    var links = peers.keys + refusals.keys + connecting.keys
    links += sessions.map { LinkID(channel: $0.value.channel, peer: $0.key.peer) }
    links.sort()
    var found: [(link: LinkID, phase: AssociationPhase)] = []
    for link in links where found.last?.link != link {
      if let phase = phase(of: link, at: now) { found.append((link, phase)) }
    }
    return found
  }

  /// Nil when there is nothing between the two.
  func phase(of link: LinkID, at now: Instant) -> AssociationPhase? {
    let roles = sessions(of: link).map { $0.role }
    if let peer = peers[link] {
      if peer.nextKeyAt != nil { return .rekeying }
      return roles.contains { $0 != .current } ? .draining : .active
    }
    for role in roles {
      if case .suspended = role { return .suspended }
      if role == .restricted { return .restricted }
    }
    if let refusal = refusals[link], now < refusal.until { return .refused }
    if let until = connecting[link], now < until { return .connecting }
    return nil
  }

  /// The refusal that still holds.
  func refusal(of link: LinkID, at now: Instant) -> Refusal? {
    refusals[link].flatMap { now < $0.until ? $0 : nil }
  }

  private func sessions(of link: LinkID) -> [(id: SessionLinkID, role: Role)] {
    var found: [(id: SessionLinkID, role: Role)] = []
    var index = sessions.firstIndex { $0.peer >= link.peer }
    while index < sessions.count, sessions.keys[index].peer == link.peer {
      if sessions[at: index].channel == link.channel {
        found.append((sessions.keys[index], sessions[at: index].role))
      }
      index += 1
    }
    return found
  }

  // MARK: Up and down

  /// This node begins a handshake.
  mutating func connecting(_ link: LinkID, at now: Instant) {
    guard peers.index(of: link) == nil else { return }
    if connecting.count >= Limits.links, connecting.index(of: link) == nil,
      let oldest = connecting.min(by: { $0.value < $1.value })
    {
      connecting[oldest.key] = nil
    }
    connecting[link] = now + Self.connectTime
  }

  /// A session link can be used.
  mutating func established(
    _ session: SessionLinkID, in channel: ChannelID, bootID: UInt64, over route: Route,
    _ standing: Standing, at now: Instant
  ) -> [Output] {
    let link = LinkID(channel: channel, peer: session.peer)
    connecting[link] = nil
    guard standing.isKeyCurrent, !standing.isNonMember else {
      return restrict(session, of: link, bootID: bootID, at: now)
    }
    if let index = peers.index(of: link), peers[at: index].bootID == bootID {
      changeSession(ofPeerAt: index, to: session, at: now)
      return []
    }
    var out: [Output] = []
    if let former = self.session(of: link) {
      // The session of an earlier run of the peer may be under another key.
      if former != session { set(former, .draining(until: now + Self.drainTime), channel) }
      out.append(.down(link, .replaced))
    }
    guard standing.hasRoom else {
      set(session, nil, channel)
      return out + [.close(session)]
    }
    out.append(.up(session, link, bootID: bootID, over: route))
    return out
  }

  /// The association is in use, over this session, from now on.
  mutating func begin(
    _ link: LinkID, on session: SessionLinkID, bootID: UInt64, at now: Instant
  ) {
    for other in sessions(of: link) where other.id != session && other.role == .restricted {
      set(other.id, .draining(until: now + Self.drainTime), link.channel)
    }
    set(session, .current, link.channel)
    peers[link] = Peer(key: session.key, bootID: bootID, upSince: now)
  }

  /// The association is in use no more.
  mutating func end(_ link: LinkID) {
    if let session = session(of: link), sessions[session]?.role == .current { forget(session) }
    peers[link] = nil
  }

  /// The same pair under the new key: everything else goes on as it is.
  private mutating func changeSession(
    ofPeerAt index: Int, to session: SessionLinkID, at now: Instant
  ) {
    let channel = peers.keys[index].channel
    let former = SessionLinkID(key: peers[at: index].key, peer: session.peer)
    peers[at: index].key = session.key
    peers[at: index].nextKeyAt = nil
    set(session, .current, channel)
    if former != session { set(former, .draining(until: now + Self.drainTime), channel) }
  }

  private mutating func restrict(
    _ session: SessionLinkID, of link: LinkID, bootID: UInt64, at now: Instant
  ) -> [Output] {
    if let peer = peers[link] {
      // Of two session links one is used: the other would stay after this one is gone.
      if peer.key != session.key {
        set(session, .draining(until: now + Self.drainTime), link.channel)
      }
      return []
    }
    restrictions[session] = Restriction(since: now, bootID: bootID, nextAt: now)
    set(session, .restricted, link.channel)
    return [.serve(session)]
  }

  /// A session link has ended.
  mutating func closed(_ session: SessionLinkID, _ reason: LinkCloseReason) -> [Output] {
    guard let (channel, role) = sessions[session] else { return [] }
    let link = LinkID(channel: channel, peer: session.peer)
    set(session, nil, channel)
    switch role {
    case .current: return [.down(link, reason)]
    case .suspended(let suspension) where reason == .timedOut:
      // Whether the peer is there is asked a while longer, without the session.
      return [.connect(link, bootID: suspension.bootID, over: suspension.route)]
    case .suspended, .draining, .restricted: return []
    }
  }

  /// The failure detector gave up a peer: the association is down for the call and in this node's
  /// neighbour reports. Its session stays as long as the link engine keeps it.
  mutating func suspend(_ link: LinkID, route: Route?, at now: Instant) -> [Output] {
    guard let peer = peers[link], let session = session(of: link) else { return [] }
    let role = route.map {
      Role.suspended(Suspension(since: now, bootID: peer.bootID, route: $0))
    }
    set(session, role, link.channel)
    return [.down(link, .timedOut)]
  }

  /// A session link that is about to be closed has no role any more.
  mutating func forget(_ session: SessionLinkID) {
    guard let channel = sessions[session]?.channel else { return }
    set(session, nil, channel)
  }

  /// Suspended sessions over which something came since; the host then establishes them again.
  func revivable(
    lastHeard: (SessionLinkID) -> Instant?
  ) -> [(session: SessionLinkID, bootID: UInt64)] {
    sessions.compactMap { session, entry in
      guard case .suspended(let suspension) = entry.role, let heard = lastHeard(session),
        heard > suspension.since
      else { return nil }
      return (session, suspension.bootID)
    }
  }

  mutating func updateRestriction<Result>(
    of session: SessionLinkID, _ body: (inout Restriction) -> Result
  ) -> Result? {
    defer { deadline = nextDeadline }
    return restrictions.update(session, body)
  }

  /// Notes that one of the two refuses the other; the refusal that ends first makes room.
  mutating func refuse(_ link: LinkID, _ refusal: Refusal) {
    if refusals.count >= Limits.links, refusals.index(of: link) == nil,
      let first = refusals.min(by: { $0.value.until < $1.value.until })
    {
      refusals[first.key] = nil
    }
    refusals[link] = refusal
  }

  /// This node may do more or less than before: peers that refused it may decide anew.
  mutating func forgetRefusalsByPeers(in channel: ChannelID) {
    for link in refusals.keys
    where link.channel == channel && refusals[link]?.isByPeer ?? false { refusals[link] = nil }
  }

  private mutating func set(_ session: SessionLinkID, _ role: Role?, _ channel: ChannelID) {
    if role != .restricted { restrictions[session] = nil }
    sessions[session] = role.map { (channel, $0) }
    hasSuspended = sessions.contains {
      if case .suspended = $0.value.role { true } else { false }
    }
    deadline = nextDeadline
  }

  /// When a drained session ends or a restricted one is served next.
  var nextDeadline: Instant? {
    var next: Instant?
    for (session, entry) in sessions {
      switch entry.role {
      case .draining(let until): next = soonest(next, until)
      case .restricted: next = soonest(next, restrictions[session]?.nextAt)
      case .current, .suspended: break
      }
    }
    return next
  }
}
