import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterLink
import MusterMedia
import MusterWire

/// Payloads of peers: what they carry is handed to the part that it is for, and sealed for sending.
extension Node {
  /// A payload of a session link, opened and fresh, and the route that it took.
  mutating func receivePayload(
    _ payload: [UInt8], over session: SessionLinkID, _ route: Route, at now: Instant,
    _ out: inout [Output]
  ) {
    guard let link = associations.usedLink(of: session) else {
      receive(payload, restrictedTo: session, at: now, &out)
      return
    }
    switch PayloadKind(of: payload) {
    case .rtp: perform(media.receiveRTP(payload, over: link, at: now), at: now, &out)
    case .rtcp: perform(media.receiveRTCP(payload, over: link, at: now), at: now, &out)
    case .relay: receiveEnvelope(payload, over: link, at: now, &out)
    case .control:
      guard let messages = try? Control.decode(payload) else { return }
      receive(messages, over: link, route, at: now, &out)
    case .keepalive, .path, nil: break
    }
  }

  /// Of subscriptions to one stream in a payload the last one counts, of pings the first few:
  /// nothing makes a node work or answer a hundred times for one datagram.
  private mutating func receive(
    _ messages: [Control], over link: LinkID, _ route: Route, at now: Instant,
    _ out: inout [Output]
  ) {
    var subscriptions = PeerTable<StreamID, Subscription>()
    var pings = 0
    for message in messages {
      switch message {
      case .subscribe(let newest): subscriptions[newest.stream] = newest
      case .ping:
        pings += 1
        if pings <= Self.pingsAtOnce { receive(message, over: link, at: now, &out) }
      case .pong(let token):
        receivePong(token, PathID(peer: link.peer, route: route), at: now)
        reportPong(token, over: link, route, at: now, &out)
      default: receive(message, over: link, at: now, &out)
      }
    }
    for (_, subscription) in subscriptions {
      receive(.subscribe(subscription), over: link, at: now, &out)
    }
  }

  private static let pingsAtOnce = 4

  /// A restricted session gets answers that keep its link, and nothing of the channel.
  private mutating func receive(
    _ payload: [UInt8], restrictedTo session: SessionLinkID, at now: Instant,
    _ out: inout [Output]
  ) {
    guard associations.isRestricted(session), PayloadKind(of: payload) == .control,
      let messages = try? Control.decode(payload)
    else { return }
    for message in messages.prefix(Self.pingsAtOnce) {
      switch message {
      case .ping(let token): send([.pong(token)], over: session, at: now, &out)
      case .entry(let bytes): receiveCredential(bytes, over: session, at: now, &out)
      default: break
      }
    }
  }

  private mutating func receive(
    _ message: Control, over link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    switch message {
    case .entry, .entriesReceived, .digest, .ranges, .want, .probe, .probed:
      out += change(link.channel, at: now) { $0.receive(message, from: link.peer, at: now) }
    case .subscribe(let subscription):
      perform(media.receive(subscription, from: link, at: now), at: now, &out)
    case .ping(let token): send([.pong(token)], over: link, at: now, &out)
    case .pong: break
    case .epochKey(let secret, let entry):
      receiveKey(secret, entry: entry, over: link, at: now, &out)
    case .refused(let reason): refused(reason, over: link, at: now, &out)
    case .seen(let address): receiveSeen(address, over: link, at: now)
    case .candidates(let addresses): receiveCandidates(addresses, over: link, at: now, &out)
    }
  }

  /// Seals control messages for one peer; dropped when the link has no session.
  mutating func send(
    _ messages: [Control], over link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    send(OutgoingPayload(Control.encode(messages)), over: link, at: now, &out)
  }

  /// Seals a payload as one datagram; false when the link has no session.
  @discardableResult
  mutating func send(
    _ payload: OutgoingPayload, over link: LinkID, at now: Instant,
    _ out: inout [Output]
  ) -> Bool {
    guard let session = associations.session(of: link),
      let sealed = links.seal(payload, on: session, at: now)
    else { return false }
    send(sealed.datagram, over: sealed.route, at: now, &out)
    return true
  }

  /// Seals control messages for a session link of any role.
  mutating func send(
    _ messages: [Control], over session: SessionLinkID, at now: Instant, _ out: inout [Output]
  ) {
    let payload = OutgoingPayload(Control.encode(messages))
    guard let sealed = links.seal(payload, on: session, at: now) else { return }
    send(sealed.datagram, over: sealed.route, at: now, &out)
  }

  // MARK: Time

  /// Offers the key and checks the peer's standing where that is due.
  mutating func tick(peer link: LinkID, at now: Instant, _ out: inout [Output]) {
    guard let index = peers.index(of: link) else { return }
    if let due = peers[at: index].nextKeyAt, due <= now { offerKey(over: link, at: now, &out) }
    if let due = peers[at: index].nextCheckAt, due <= now {
      checkStanding(of: link, at: now, &out)
    }
  }

  /// Whether the neighbour is still a member, and still one to have a link with.
  private mutating func checkStanding(
    of link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    _ = peers.update(link) { $0.nextCheckAt = now + Peer.checkInterval }
    signalRelayLoad(at: now, &out)
    dismissNonMember(link, at: now, &out)
    guard let peer = peers[link], let state = channels[link.channel]?.state,
      now - peer.upSince > Self.trimPatience, !state.wantsLink(to: link.peer)
    else { return }
    close(link, at: now, &out)
  }

  /// Ends the session that carries an association, and so the association.
  mutating func close(_ link: LinkID, at now: Instant, _ out: inout [Output]) {
    guard let session = associations.session(of: link) else { return }
    perform(links.close(session, reason: .local, at: now), at: now, &out)
  }

  /// How long a link beyond those wanted stands: by then both ends know the same members.
  static let trimPatience = Duration.seconds(10)
}
