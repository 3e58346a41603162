import MusterBase
import MusterCrypto
import MusterWire

/// One sealed datagram with what congestion feedback refers to.
public struct SealedDatagram: Equatable, Sendable {
  /// The whole UDP payload.
  public let datagram: [UInt8]
  public let route: Route
  /// The counter of the session that it was sealed under. It grows by one with each datagram and
  /// begins anew with each session, about every two minutes; feedback travels under the session
  /// whose numbers it names.
  public let packetNumber: UInt64
}

/// Every link of one node: handshakes, sessions, paths. A state machine without I/O.
///
/// Silent to everyone who cannot prove the channel's key. What does not verify changes a counter
/// and nothing else. A copy of an engine would use its nonces again: there is one, and it moves.
public struct LinkEngine: Sendable {
  /// What the host is to do, in this order.
  public enum Output: Equatable, Sendable {
    /// Over a relayed route, the host puts the datagram into an envelope for the relay.
    case send([UInt8], over: Route)
    /// The link may be used in both directions.
    case established(SessionLinkID, route: Route, bootID: UInt64)
    /// The link uses another path: the peer answered a challenge there, or came through a relay.
    case moved(SessionLinkID, to: Route)
    /// An opened payload of kind control, relay, RTP or RTCP, the route that it took, and the packet
    /// number of its session.
    case delivered(SessionLinkID, [UInt8], over: Route, packetNumber: UInt64)
    case closed(SessionLinkID, LinkCloseReason)
  }

  /// A channel key under which links are wanted, with the keys that concern this node as responder.
  struct OpenKey: Sendable {
    let key: ChannelKey
    let initiationKey: SecretBytes
    let cookieKey: SecretBytes
    let prologue: [UInt8]
  }

  /// Peers whose accepted initiations are remembered, in all openKeys.
  static let memoryLimit = 4 * Limits.links

  let identity: Identity
  let bootID: UInt64
  let configuration: Configuration
  var entropy: Entropy
  var jitter: PRNG

  var openKeys = PeerTable<KeyID, OpenKey>()
  var links = PeerTable<SessionLinkID, Link>()
  /// The receiver's indices in use, and which link each leads to.
  var indices = PeerTable<UInt32, SessionLinkID>()
  var memories = PeerTable<SessionLinkID, HandshakeMemory>()
  /// Every path, shared by the links of all keys between the same two nodes.
  public var paths = PathTable()
  var handshakeCounter: UInt64 = 0
  var cookies: CookieJar
  var budgetWithoutCookie: TokenBucket
  var budgetWithCookie: TokenBucket

  public internal(set) var counters = LinkCounters()
  var answeredInitiations = AnsweredInitiations()
  /// When `tick` next may have work; now and then a little early, so that it need not be computed
  /// over all links for every packet.
  public internal(set) var deadline: Instant?

  /// `seed` is for jitter only; keys and indices come from `entropy`.
  public init(
    identity: Identity, bootID: UInt64, entropy: Entropy, seed: UInt64,
    configuration: Configuration = .init()
  ) {
    self.identity = identity
    self.bootID = bootID
    self.entropy = entropy
    self.configuration = configuration
    jitter = PRNG(seed: seed)
    cookies = CookieJar(lifetime: configuration.cookieLifetime)
    let before = configuration.handshakesPerSecondBeforeCookies
    budgetWithoutCookie = TokenBucket(capacity: before, perSecond: before)
    let with = configuration.handshakesPerSecondWithCookies
    budgetWithCookie = TokenBucket(capacity: with, perSecond: with)
  }

  /// Accepts and makes links in a channel from now on.
  public mutating func open(_ channel: ChannelKey) {
    guard openKeys.count < Limits.channelKeys || openKeys.index(of: channel.keyID) != nil else {
      counters.refused += 1
      return
    }
    let own = identity.x25519PublicKey
    openKeys[channel.keyID] = OpenKey(
      key: channel, initiationKey: channel.handshakeKey(.initiation, responder: own),
      cookieKey: channel.handshakeKey(.cookie, responder: own),
      prologue: Array("muster/1".utf8) + channel.keyID.key.bytes)
  }

  /// Ends every link of a channel and answers nobody in it any more.
  public mutating func close(key: KeyID, at now: Instant) -> [Output] {
    var outputs: [Output] = []
    for id in links.keys where id.key == key {
      outputs += close(id, reason: .local, at: now)
    }
    openKeys[key] = nil
    return outputs
  }

  /// Discovery proved that this run of `peer` is at `address`: makes a link unless one stands or is
  /// being made.
  public mutating func connect(
    to peer: NodeID, bootID: UInt64, in key: KeyID, over route: Route, now: Instant
  ) -> [Output] {
    let id = SessionLinkID(key: key, peer: peer)
    guard openKeys.index(of: key) != nil, peer != identity.id, route.isUnicast,
      route.mayLead(to: peer)
    else {
      counters.refused += 1
      return []
    }
    guard let position = index(of: id, route: route, at: now) else { return [] }
    if links[at: position].bootID == bootID {
      return probeIfQuiet(position, route, bootID: bootID, at: now)
    }
    if let pending = links[at: position].pending, pending.bootID == bootID {
      let isOtherRelay = pending.route.relay != route.relay
      links[at: position].pending?.route = route
      // To a relay, or away from one, at once: the next attempt may be seconds away.
      return isOtherRelay ? initiate(position, at: now) : []
    }
    // The peer was first, and is expected to use the session that it was given.
    let patience = configuration.tieBreakPatience
    if links[at: position].unconfirmed.contains(where: {
      $0.bootID == bootID && now - $0.createdAt < patience
    }) {
      return []
    }
    return startHandshake(position, bootID: bootID, route: route, at: now)
  }

  public mutating func receive(
    _ datagram: [UInt8], from source: Route, at now: Instant
  ) -> [Output] {
    switch DatagramKind(of: datagram) {
    case .data: return receiveData(datagram, from: source, at: now)
    case .handshakeInitiation: return receiveInitiation(datagram, from: source, at: now)
    case .handshakeResponse: return receiveResponse(datagram, at: now)
    case .cookieReply: return receiveCookie(datagram, at: now)
    case .announcement, .challenge, .rendezvousHello, .rendezvousCookie, .rendezvousRegistration,
      .rendezvousRecords, nil:
      counters.malformed += 1
      return []
    }
  }

  /// Header and body sealed into one datagram, and where to send it; nil when the link has no
  /// usable session.
  public mutating func seal(
    _ header: [UInt8], _ body: ArraySlice<UInt8>, on link: SessionLinkID, at now: Instant
  ) -> SealedDatagram? {
    guard let position = links.index(of: link) else { return nil }
    return seal(header, body, position, at: now)
  }

  /// Ends a link, telling the peer so.
  public mutating func close(
    _ link: SessionLinkID, reason: LinkCloseReason, at now: Instant
  ) -> [Output] {
    guard let position = links.index(of: link) else { return [] }
    var outputs = send(PathMessage.close.encoded(), position, at: now)
    outputs += remove(link, reason: reason, at: now)
    return outputs
  }

  /// When anything authentic last arrived on the link.
  public func lastHeard(_ link: SessionLinkID) -> Instant? {
    links.index(of: link).map { links[at: $0].lastHeard }
  }

  /// What is heard over the path in use; nil before there is a session.
  public func liveness(of link: SessionLinkID) -> PathLiveness? {
    path(of: link).flatMap { paths[$0]?.liveness }
  }

  /// Where a link's datagrams go; nil when there is no link.
  public func route(of link: SessionLinkID) -> Route? {
    links.index(of: link).map { links[at: $0].route }
  }

  /// The path that a link uses; nil before there is a session.
  public func path(of link: SessionLinkID) -> PathID? {
    links.index(of: link).flatMap { links[at: $0].isEstablished ? links[at: $0].path : nil }
  }

  /// In order of peer and channel.
  public var establishedLinks: [SessionLinkID] {
    links.filter { $0.value.isEstablished }.map { $0.key }
  }
}
