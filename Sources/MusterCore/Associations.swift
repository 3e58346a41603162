import MusterBase
import MusterLink
import MusterWire

/// The associations of this node with its peers, one for each channel and peer, and the session
/// links that carry the associations.
///
/// An association outlives its sessions: when the channel's key changes, the same two nodes
/// establish a session link under the new key, and the former session link drains. Every session
/// link has one role. The phase of an association is derived from the roles of its sessions, so
/// phase and roles cannot disagree.
struct Associations: ~Copyable, Sendable {
  /// The actions that follow from an input, in order.
  enum Output: Equatable, Sendable {
    /// The association is usable; the node then calls `begin`.
    case up(SessionLinkID, LinkID, bootID: UInt64, over: Route)
    /// The association is no longer usable; the node ends the state that depends on the
    /// association, then calls `end`.
    case down(LinkID, LinkCloseReason)
    /// Close a session link and notify the peer.
    case close(SessionLinkID)
    /// Establish a link to this run of the peer.
    case connect(LinkID, bootID: UInt64, over: Route)
    /// Send credentials and keys over a restricted session link, or the reason for a refusal.
    case exchangeCredentials(SessionLinkID)
  }

  /// The role of a session link.
  enum Role: Equatable, Sendable {
    /// The session link carries the association.
    case current
    /// Another session link carries the association; this one is closed at `until`.
    case draining(until: Instant)
    case suspended(Suspension)
    case restricted
  }

  /// A session that is kept although its peer no longer answers.
  struct Suspension: Equatable, Sendable {
    let since: Instant
    let bootID: UInt64
    let route: Route
  }

  /// The state of a restricted session link, over which the two nodes exchange only credentials,
  /// keys and the reason for a refusal.
  struct Restriction: Sendable {
    let since: Instant
    let bootID: UInt64
    var nextAt: Instant
    /// Why a redemption that the peer has shown gives it no role; nil if it has shown none.
    var refusal: Refusal?
    /// The time at which the peer was first sent the reason for its refusal; nil if it was not.
    var refusedAt: Instant?
    /// The rate limit for new credentials from the peer; honest peers have five at most.
    var credentials = TokenBucket(capacity: 8, perSecond: 2)
  }

  /// A run of a peer that this node has refused, or that has refused this node, until `until`.
  struct RefusedRun: Equatable, Sendable {
    /// The run of the peer; the refusal does not apply to a later run.
    var bootID: UInt64
    var until: Instant
    /// Whether the peer refused this node, rather than this node the peer.
    var isByPeer: Bool
  }

  /// The facts that determine the role of a new session link: whether it may carry the association.
  struct Eligibility {
    var isKeyCurrent: Bool
    /// Whether the peer is a member, to this node's knowledge.
    var isMember: Bool
    /// Whether there is room for one more link in the channel.
    var hasRoom: Bool
  }

  /// The lifetime of a draining session link, beside the one that has replaced it.
  static let drainTime = Duration.seconds(5)
  static let restrictedTime = Duration.seconds(8)
  /// The lifetime of a restricted session link after the reason for the refusal was first sent.
  static let refusedTime = Duration.seconds(2)
  /// The number of restricted session links of one channel. Those refused first give way, so that
  /// they do not take the room for links with members.
  static let restrictedLimit = 32
  /// The interval between two transmissions of a key, or of the reason for a refusal.
  static let keyRepeat = Duration.seconds(1)
  /// The interval between two transmissions of this node's credentials to a peer that is not a
  /// member yet: a lost datagram delays the meeting of two nodes by as much.
  static let credentialRepeat = Duration.milliseconds(250)
  /// The time limit of a handshake, the same as in the link engine.
  static let connectTime = LinkEngine.Configuration().handshakeGiveUp

  /// The associations in use: active, rekeying or draining.
  var peers = DeadlineTable<LinkID, Peer>()
  private(set) var sessions = PeerTable<SessionLinkID, (channel: ChannelID, role: Role)>()
  private var restrictions = PeerTable<SessionLinkID, Restriction>()
  private var refusals = PeerTable<LinkID, RefusedRun>()
  /// The handshakes that this node began, with the times at which they are abandoned.
  private var connecting = PeerTable<LinkID, Instant>()
  /// The time at which `tick` next has work.
  private(set) var deadline: Instant?
  /// Whether any session is suspended; if so, every received datagram may revive a session.
  private(set) var hasSuspended = false

  // MARK: Queries

  /// The session link that carries an association in use.
  func session(of link: LinkID) -> SessionLinkID? {
    peers.index(of: link).map { SessionLinkID(key: peers[at: $0].key, peer: link.peer) }
  }

  /// The association in use that a session link belongs to; nil if the session link is unknown,
  /// suspended or restricted.
  func usedLink(of session: SessionLinkID) -> LinkID? {
    guard let index = sessions.index(of: session) else { return nil }
    let link = LinkID(channel: sessions[at: index].channel, peer: session.peer)
    switch sessions[at: index].role {
    case .current, .draining: return peers.index(of: link) == nil ? nil : link
    case .suspended, .restricted: return nil
    }
  }

  /// Whether this node has begun a handshake in a channel that may still succeed.
  func isConnecting(in channel: ChannelID, at now: Instant) -> Bool {
    connecting.contains { $0.key.channel == channel && now < $0.value }
  }

  func isRestricted(_ session: SessionLinkID) -> Bool { restrictions.index(of: session) != nil }

  func restriction(of session: SessionLinkID) -> Restriction? { restrictions[session] }

  /// The phases of all associations, ordered by peer, then by channel.
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

  /// The phase of an association; nil if there is none.
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

  /// The refusal that applies to a link; nil if there is none or it has expired.
  func refusedRun(of link: LinkID, at now: Instant) -> RefusedRun? {
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

  // MARK: Establishment and closure

  /// Records a handshake that this node begins.
  mutating func connecting(_ link: LinkID, at now: Instant) {
    guard peers.index(of: link) == nil else { return }
    if connecting.count >= Limits.links, connecting.index(of: link) == nil,
      let oldest = connecting.min(by: { $0.value < $1.value })
    {
      connecting[oldest.key] = nil
    }
    connecting[link] = now + Self.connectTime
  }

  /// Assigns a role to a newly established session link.
  mutating func established(
    _ session: SessionLinkID, in channel: ChannelID, bootID: UInt64, over route: Route,
    _ eligibility: Eligibility, at now: Instant
  ) -> [Output] {
    let link = LinkID(channel: channel, peer: session.peer)
    connecting[link] = nil
    guard eligibility.isKeyCurrent, eligibility.isMember else {
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
    guard eligibility.hasRoom else {
      set(session, nil, channel)
      return out + [.close(session)]
    }
    out.append(.up(session, link, bootID: bootID, over: route))
    return out
  }

  /// Puts an association into use over this session.
  mutating func begin(
    _ link: LinkID, on session: SessionLinkID, bootID: UInt64, at now: Instant
  ) {
    for other in sessions(of: link) where other.id != session && other.role == .restricted {
      set(other.id, .draining(until: now + Self.drainTime), link.channel)
    }
    set(session, .current, link.channel)
    peers[link] = Peer(key: session.key, bootID: bootID, upSince: now)
  }

  /// Takes an association out of use.
  mutating func end(_ link: LinkID) {
    if let session = session(of: link), sessions[session]?.role == .current { forget(session) }
    peers[link] = nil
  }

  /// Moves an association to a session link under another key; the other state of the association
  /// is kept.
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
      // The association already uses another session link; this one would otherwise stay up unused.
      if peer.key != session.key {
        set(session, .draining(until: now + Self.drainTime), link.channel)
      }
      return []
    }
    var out: [Output] = []
    if let former = restrictedToReplace(in: link.channel) {
      forget(former)
      out.append(.close(former))
    }
    restrictions[session] = Restriction(since: now, bootID: bootID, nextAt: now)
    set(session, .restricted, link.channel)
    out.append(.exchangeCredentials(session))
    return out
  }

  /// The restricted session link that gives way to another one; nil if there is room for both.
  private func restrictedToReplace(in channel: ChannelID) -> SessionLinkID? {
    let restricted = restrictions.filter { sessions[$0.key]?.channel == channel }
    guard restricted.count >= Self.restrictedLimit else { return nil }
    func rank(_ one: Restriction) -> (Int, Instant) { (one.refusedAt == nil ? 1 : 0, one.since) }
    return restricted.min { rank($0.value) < rank($1.value) }?.key
  }

  /// Handles the end of a session link.
  mutating func closed(_ session: SessionLinkID, _ reason: LinkCloseReason) -> [Output] {
    guard let (channel, role) = sessions[session] else { return [] }
    let link = LinkID(channel: channel, peer: session.peer)
    set(session, nil, channel)
    switch role {
    case .current: return [.down(link, reason)]
    case .suspended(let suspension) where reason == .timedOut:
      // The peer may still be reachable, so a new handshake is attempted.
      return [.connect(link, bootID: suspension.bootID, over: suspension.route)]
    case .suspended, .draining, .restricted: return []
    }
  }

  /// Suspends an association whose peer the failure detector considers failed: the association is
  /// down for the call and in this node's neighbour reports. Unless `route` is nil, the session is
  /// kept until the link engine closes its link.
  mutating func suspend(_ link: LinkID, route: Route?, at now: Instant) -> [Output] {
    guard let peer = peers[link], let session = session(of: link) else { return [] }
    let role = route.map {
      Role.suspended(Suspension(since: now, bootID: peer.bootID, route: $0))
    }
    set(session, role, link.channel)
    return [.down(link, .timedOut)]
  }

  /// Removes the role of a session link that is about to be closed.
  mutating func forget(_ session: SessionLinkID) {
    guard let channel = sessions[session]?.channel else { return }
    set(session, nil, channel)
  }

  /// The suspended sessions whose peers have sent a datagram since the suspension; the node puts
  /// these sessions back into use without a handshake.
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

  /// Records a refusal; if the table is full, the refusal that expires first is removed.
  mutating func refuse(_ link: LinkID, _ run: RefusedRun) {
    if refusals.count >= Limits.links, refusals.index(of: link) == nil,
      let first = refusals.min(by: { $0.value.until < $1.value.until })
    {
      refusals[first.key] = nil
    }
    refusals[link] = run
  }

  /// Forgets the refusals by peers after a change of this node's role, since peers may now accept
  /// this node.
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

  /// The time at which the next session link is closed after draining, or served while restricted.
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
