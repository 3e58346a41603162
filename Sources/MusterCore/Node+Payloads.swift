import MusterBase
import MusterChannel
import MusterCongestion
import MusterCrypto
import MusterDiscovery
import MusterLink
import MusterMedia
import MusterWire

/// The dispatch of received payloads by type, and the sealing of outgoing payloads.
extension Node {
  /// Handles a decrypted, non-replayed payload of a session link, which arrived over `route`.
  mutating func receivePayload(
    _ payload: [UInt8], _ packet: ReceivedPacket, over session: SessionLinkID, _ route: Route,
    at now: Instant, _ out: inout [Output]
  ) {
    guard let link = associations.usedLink(of: session) else {
      receive(payload, restrictedTo: session, at: now, &out)
      return
    }
    congestion.received(packet, payload, on: session, over: route, at: now)
    switch PayloadKind(of: payload) {
    case .rtp: perform(media.receiveRTP(payload, over: link, at: now), at: now, &out)
    case .rtcp:
      let wait = videoWait(over: link, at: now)
      perform(media.receiveRTCP(payload, over: link, wait: wait, at: now), at: now, &out)
    case .relay:
      receiveEnvelope(payload, over: link, arrivedAt: packet.arrivedAt, at: now, &out)
    case .control:
      guard let messages = try? Control.decode(payload) else { return }
      receive(messages, over: link, route, at: now, &out)
    case .feedback:
      receiveFeedback(payload, over: session, arrivedAt: packet.arrivedAt, at: now, &out)
    case .keepalive, .path, nil: break
    }
  }

  /// Handles the control messages of one payload: only the last subscription to each stream and the
  /// first `pingsAtOnce` pings, to limit the work that one datagram can cause.
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
    var hasChanged = false
    for (_, subscription) in subscriptions
    where media.receive(subscription, from: link, at: now) { hasChanged = true }
    if hasChanged { updateDemand(over: link, at: now, &out) }
  }

  private static let pingsAtOnce = 4

  /// Handles the pings and credentials among the first `pingsAtOnce` messages of a payload over a
  /// restricted session, and ignores all other messages.
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
      // Of these, a peer that restricts the link sends entries only.
      if case .entry = message {} else { admitted(over: link, at: now, &out) }
      let rate = deliveryRate(at: now)
      out += change(link.channel, at: now) {
        $0.limitDeliveries(toBytesPerSecond: rate, at: now)
        return $0.receive(message, from: link.peer, at: now)
      }
      if case .digest = message { enterCallIfDue(link.channel, at: now, &out) }
    case .ping(let token): send([.pong(token)], over: link, at: now, &out)
    case .subscribe, .pong: break  // handled with the others of their payload
    case .epochKey(let secret, let entry):
      receiveKey(secret, entry: entry, over: link, at: now, &out)
    case .refused(let reason): refused(reason, over: link, at: now, &out)
    case .seen(let address): receiveSeen(address, over: link, at: now)
    case .candidates(let addresses): receiveCandidates(addresses, over: link, at: now, &out)
    case .sentLayer(let sent): perform(media.receive(sent, from: link, at: now), at: now, &out)
    }
  }

  /// The bytes per second of the entries that others lack or want while this node is in a call: an
  /// eighth of what its best path carries, so that its uplink has the rest for audio and video. Nil
  /// outside of calls.
  private func deliveryRate(at now: Instant) -> Double? {
    media.isInCall ? congestion.bestEstimate(at: now).bytes(in: .seconds(1)) / 8 : nil
  }

  /// Seals control messages for one peer; drops the messages if the link has no session.
  mutating func send(
    _ messages: [Control], over link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    send(OutgoingPayload(Control.encode(messages)), over: link, at: now, &out)
  }

  /// Seals a payload as one datagram; false if the link has no session. Its class is that of the
  /// payload unless `serviceClass` gives another.
  /// `isReleased` says that the payload has waited for its turn; it may be part of a probe.
  @discardableResult
  mutating func send(
    _ payload: OutgoingPayload, as serviceClass: ServiceClass? = nil, isReleased: Bool = false,
    probe: ProbeCluster.ID? = nil, over link: LinkID, at now: Instant, _ out: inout [Output]
  ) -> Bool {
    guard let session = associations.session(of: link) else { return false }
    return send(
      payload, as: serviceClass, isReleased: isReleased, probe: probe, over: session, at: now, &out)
  }

  /// Seals control messages for a session link of any role.
  mutating func send(
    _ messages: [Control], over session: SessionLinkID, at now: Instant, _ out: inout [Output]
  ) {
    send(OutgoingPayload(Control.encode(messages)), over: session, at: now, &out)
  }

  /// Seals a payload as one datagram for a session link of any role; false if the link has no
  /// session.
  @discardableResult
  private mutating func send(
    _ payload: OutgoingPayload, as serviceClass: ServiceClass? = nil, isReleased: Bool = false,
    probe: ProbeCluster.ID? = nil, over session: SessionLinkID, at now: Instant,
    _ out: inout [Output]
  ) -> Bool {
    guard let sealed = links.seal(payload, on: session, at: now) else { return false }
    let serviceClass = serviceClass ?? payload.serviceClass
    let estimateFalls = congestion.sent(
      sealed, payload, as: serviceClass, isReleased: isReleased, probe: probe, on: session, at: now)
    send(sealed.datagram, as: serviceClass, over: sealed.route, at: now, &out)
    if estimateFalls {
      updateBandwidth(of: PathID(peer: session.peer, route: sealed.route), at: now, &out)
    }
    return true
  }

  /// Sends a payload when its turn on the link's path comes, or at once if the path is not paced.
  mutating func queue(
    _ packet: QueuedPacket, _ priority: QueuedPacket.Priority, at now: Instant,
    _ out: inout [Output]
  ) {
    if let path = path(of: packet.link), congestion.queue(packet, priority, on: path, at: now) {
      return
    }
    send(packet.payload, over: packet.link, at: now, &out)
  }

  /// The time that video would now wait for its turn on a link's path.
  func videoWait(over link: LinkID, at now: Instant) -> Duration {
    path(of: link).map { congestion.wait(on: $0, at: now) } ?? .zero
  }

  /// Executes the outputs of congestion control.
  mutating func perform(
    _ outputs: [Congestion.Output], at now: Instant, _ out: inout [Output]
  ) {
    for output in outputs {
      switch output {
      case .send(let payload, let session):
        send(OutgoingPayload(payload), over: session, at: now, &out)
      case .release(let packet, let probe):
        send(packet.payload, isReleased: true, probe: probe, over: packet.link, at: now, &out)
      case .pad(let padding, let session, let probe):
        send(
          OutgoingPayload(padding), isReleased: true, probe: probe, over: session, at: now, &out)
      case .expired(let packet): media.expired(packet)
      case .ask(let path): ask(about: path, at: now, &out)
      }
    }
  }

  // MARK: Time

  /// Performs what is due for a peer: the offer of a key, this node's credentials, and the check of
  /// the peer's membership.
  mutating func tick(peer link: LinkID, at now: Instant, _ out: inout [Output]) {
    guard let index = peers.index(of: link) else { return }
    if let due = peers[at: index].nextKeyAt, due <= now { offerKey(over: link, at: now, &out) }
    if let due = peers[at: index].nextCredentialsAt, due <= now {
      sendCredentials(over: link, at: now, &out)
    }
    if let due = peers[at: index].nextCheckAt, due <= now {
      checkMembership(of: link, at: now, &out)
    }
  }

  /// Closes the link if the neighbour is no longer a member, or the topology does not need the
  /// link.
  private mutating func checkMembership(
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

  /// Closes the session that carries an association, and thereby the association.
  mutating func close(_ link: LinkID, at now: Instant, _ out: inout [Output]) {
    guard let session = associations.session(of: link) else { return }
    perform(links.close(session, reason: .local, at: now), at: now, &out)
  }

  /// The minimum lifetime of a link that the topology does not need, so that both ends first learn
  /// of the same members.
  static let trimPatience = Duration.seconds(10)
}
