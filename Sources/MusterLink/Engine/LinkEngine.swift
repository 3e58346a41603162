import MusterBase
import MusterCrypto
import MusterWire

/// A sealed datagram with the packet number that congestion feedback refers to.
public struct SealedDatagram: Equatable, Sendable {
  /// The whole UDP payload.
  public let datagram: [UInt8]
  /// The route to send the datagram over.
  public let route: Route
  /// The peer's index of the datagram's session, as in the datagram's header.
  public let session: UInt32
  /// The 64-bit counter of the datagram's session. It increases by one per datagram and restarts
  /// with every session, about every two minutes.
  public let packetNumber: UInt64
  /// The capabilities in force on the session.
  public let capabilities: LinkCapabilities

  /// The bytes that a datagram has besides its payload: the header, and the tag of the encryption.
  public static let overhead = DataHeader.bytes + AEAD.tagBytes
}

/// The packet that carried a payload, as congestion feedback refers to it.
public struct ReceivedPacket: Equatable, Sendable {
  /// This node's index of the packet's session, as in the packet's header.
  public let session: UInt32
  /// The packet's 64-bit counter, as `SealedDatagram.packetNumber` at the sender.
  public let number: UInt64
  /// The size of the datagram, which is the UDP payload, in bytes.
  public let bytes: Int
  /// The capabilities in force on the session.
  public let capabilities: LinkCapabilities
  /// The time at which the machine received the datagram, before this node came to it.
  public let arrivedAt: Instant
}

/// All links of one node, with their handshakes, sessions and path selection, as a state machine
/// without I/O.
///
/// The engine never replies to a sender without a channel key: input that does not verify only
/// changes a counter. The engine cannot be copied, because a copy would reuse its nonces.
public struct LinkEngine: ~Copyable, Sendable {
  /// An action for the host, which executes the outputs of a call in order.
  public enum Output: Equatable, Sendable {
    /// Send a datagram over a route; for a relayed route, the host wraps the datagram in an
    /// envelope for the relay.
    case send([UInt8], over: Route)
    /// The link can be used in both directions.
    case established(SessionLinkID, route: Route, bootID: UInt64)
    /// The link uses another path: the peer responded to a challenge there, or sent through a
    /// relay.
    case moved(SessionLinkID, to: Route)
    /// A decrypted payload of any kind arrived over this route. The engine itself handles path
    /// messages; the host needs them for congestion feedback, which covers all packets.
    case delivered(SessionLinkID, [UInt8], over: Route, ReceivedPacket)
    /// An established link was removed; its id is invalid until it is established again.
    case closed(SessionLinkID, LinkCloseReason)
  }

  /// An open channel key, with the keys derived from it for this node as responder.
  struct OpenKey: Sendable {
    let key: ChannelKey
    let initiationKey: SecretBytes
    let cookieKey: SecretBytes
    let prologue: [UInt8]
  }

  /// The maximum number of peers whose accepted initiations are remembered, over all keys.
  static let memoryLimit = 4 * Limits.links

  let identity: Identity
  let bootID: UInt64
  let configuration: Configuration
  var entropy: Entropy
  var jitter: PRNG

  var openKeys = PeerTable<KeyID, OpenKey>()
  var links = PeerTable<SessionLinkID, Link>()
  /// Local indices in use, each with its link.
  var indices = PeerTable<UInt32, SessionLinkID>()
  var memories = PeerTable<SessionLinkID, HandshakeMemory>()
  /// All paths, shared by the links of all keys between the same two nodes.
  public var paths = PathTable()
  var handshakeCounter: UInt64 = 0
  var cookies: CookieJar
  var budgetWithoutCookie: TokenBucket
  var budgetWithCookie: TokenBucket

  /// The counts of rejected and sent datagrams since this engine was created.
  public internal(set) var counters = LinkCounters()
  var answeredInitiations = AnsweredInitiations()
  /// The time at which `tick` next may have work; possibly a little early, so that it need not be
  /// recomputed over all links for every datagram.
  public internal(set) var deadline: Instant?

  /// Creates an engine; `seed` is for timer jitter only, whereas keys and indices come from
  /// `entropy`.
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

  /// Enables links under a channel key; a key beyond `Limits.channelKeys` is ignored and counted as
  /// refused.
  public mutating func open(_ channel: ChannelKey) {
    guard openKeys.count < Limits.channelKeys || openKeys.index(of: channel.keyID) != nil else {
      counters.refused += 1
      return
    }
    let own = identity.x25519PublicKey
    openKeys[channel.keyID] = OpenKey(
      key: channel, initiationKey: channel.handshakeKey(.initiation, responder: own),
      cookieKey: channel.handshakeKey(.cookie, responder: own),
      prologue: Array("muster/1".utf8) + channel.keyID.hash.bytes)
  }

  /// Closes all links under a key, and rejects further handshakes under that key.
  public mutating func close(key: KeyID, at now: Instant) -> [Output] {
    var outputs: [Output] = []
    for id in links.keys where id.key == key {
      outputs += close(id, reason: .local, at: now)
    }
    openKeys[key] = nil
    return outputs
  }

  /// Starts a handshake with the run `bootID` of `peer`, which discovery found at `route`, unless a
  /// link with that run exists or is being established. If the link exists, the route may be probed
  /// instead.
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
      // A change to or from a relay takes effect at once, because the next attempt may be seconds
      // away.
      return isOtherRelay ? initiate(position, at: now) : []
    }
    // The peer initiated first, and is expected to confirm the session.
    let patience = configuration.tieBreakPatience
    if links[at: position].unconfirmed.contains(where: {
      $0.bootID == bootID && now - $0.createdAt < patience
    }) {
      return []
    }
    return startHandshake(position, bootID: bootID, route: route, at: now)
  }

  /// Handles a datagram that arrived over `source`; input that does not verify is counted and
  /// dropped.
  public mutating func receive(
    _ datagram: [UInt8], from source: Route, at now: Instant
  ) -> [Output] {
    var outputs: [Output] = []
    receive(datagram, from: source, arrivedAt: now, at: now, into: &outputs)
    return outputs
  }

  /// Handles a datagram and appends the outputs to an array, which saves hosts an array per
  /// datagram.
  public mutating func receive(
    _ datagram: [UInt8], from source: Route, arrivedAt: Instant, at now: Instant,
    into outputs: inout [Output]
  ) {
    switch DatagramKind(of: datagram) {
    case .data:
      receiveData(datagram, from: source, arrivedAt: arrivedAt, at: now, into: &outputs)
    case .handshakeInitiation: outputs += receiveInitiation(datagram, from: source, at: now)
    case .handshakeResponse: outputs += receiveResponse(datagram, at: now)
    case .cookieReply: outputs += receiveCookie(datagram, at: now)
    case .announcement, .challenge, .rendezvousHello, .rendezvousCookie, .rendezvousRegistration,
      .rendezvousRecords, nil:
      counters.malformed += 1
    }
  }

  /// Seals a payload into one datagram for the link's route; nil without a usable session.
  public mutating func seal(
    _ payload: OutgoingPayload, on link: SessionLinkID, at now: Instant
  ) -> SealedDatagram? {
    guard let position = links.index(of: link) else { return nil }
    return seal(payload, position, at: now)
  }

  /// Closes a link and notifies the peer.
  public mutating func close(
    _ link: SessionLinkID, reason: LinkCloseReason, at now: Instant
  ) -> [Output] {
    guard let position = links.index(of: link) else { return [] }
    var outputs = send(PathMessage.close.encoded(), position, at: now)
    outputs += remove(link, reason: reason, at: now)
    return outputs
  }

  /// The time at which the last authentic datagram arrived on the link, or at which the link was
  /// created; nil without a link.
  public func lastHeard(_ link: SessionLinkID) -> Instant? {
    links.index(of: link).map { links[at: $0].lastHeard }
  }

  /// The liveness of the path in use; nil before the first session.
  public func liveness(of link: SessionLinkID) -> PathLiveness? {
    path(of: link).flatMap { paths[$0]?.liveness }
  }

  /// The route of a link's outgoing datagrams; nil without a link.
  public func route(of link: SessionLinkID) -> Route? {
    links.index(of: link).map { links[at: $0].route }
  }

  /// The capabilities in force on a link's current session; none without a session.
  public func capabilities(of link: SessionLinkID) -> LinkCapabilities {
    links.index(of: link).flatMap { links[at: $0].current?.capabilities } ?? []
  }

  /// The path that a link uses; nil before the first session.
  public func path(of link: SessionLinkID) -> PathID? {
    links.index(of: link).flatMap { links[at: $0].isEstablished ? links[at: $0].path : nil }
  }

  /// The established links, in order of peer and key.
  public var establishedLinks: [SessionLinkID] {
    links.filter { $0.value.isEstablished }.map { $0.key }
  }
}
