import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterLink
import MusterMedia
import MusterWire

/// Links as the node sees them: one per channel and peer, whatever key they were made under.
extension Node {
  /// Carries out what discovery asks for.
  mutating func perform(_ outputs: [Discovery.Output], at now: Instant, _ out: inout [Output]) {
    for output in outputs {
      switch output {
      case .broadcast(let datagram): out.append(.broadcast(datagram))
      case .send(let datagram, let address): out.append(.send(datagram, to: address))
      case .found(let peer, let bootID, let key, let address):
        guard mayConnect(to: peer, under: key, at: now) else { continue }
        perform(
          links.connect(to: peer, bootID: bootID, in: key, at: address, now: now), at: now, &out)
      }
    }
  }

  private func mayConnect(to peer: NodeID, under key: KeyID, at now: Instant) -> Bool {
    guard peers.count < Limits.links, let owner = keyOwners[key] else { return false }
    let link = LinkID(channel: owner.channel, peer: peer)
    guard !isDenied(link, at: now), let entry = channels[owner.channel] else { return false }
    // Who has a link under the key in force has not been away.
    if owner.number != entry.key.number, peers[link] != nil { return false }
    return peers[link] != nil || (entry.state.hasRoom(for: peer) && entry.state.wantsLink(to: peer))
  }

  /// Carries out what the links ask for.
  mutating func perform(_ outputs: [LinkEngine.Output], at now: Instant, _ out: inout [Output]) {
    for output in outputs {
      switch output {
      case .send(let datagram, let address): send(datagram, to: address, at: now, &out)
      case .established(let link, let address, let bootID):
        established(link, at: address, bootID: bootID, now, &out)
      case .moved(let link, let address): moved(link, to: address, at: now, &out)
      case .delivered(let link, let payload): receive(payload, over: link, at: now, &out)
      case .closed(let link, let reason): closed(link, reason, at: now, &out)
      }
    }
  }

  /// The links that need no other way: those that lead through somebody, or nowhere, do.
  var linkedPeers: [(peer: SessionLinkID, address: Address)] {
    peers.compactMap { link, peer in
      guard unreachable.index(of: link) == nil else { return nil }
      let engineLink = SessionLinkID(key: peer.key, peer: link.peer)
      return links.address(of: engineLink).flatMap { $0.relayed == nil ? (engineLink, $0) : nil }
    }
  }

  private mutating func moved(
    _ engineLink: SessionLinkID, to address: Address, at now: Instant, _ out: inout [Output]
  ) {
    guard let owner = keyOwners[engineLink.key] else { return }
    let link = LinkID(channel: owner.channel, peer: engineLink.peer)
    guard peers[link]?.key == engineLink.key else { return }
    discovery.setLinked(linkedPeers)
    pathChanged(of: link, to: address, at: now, &out)
  }

  // MARK: Up and down

  mutating func established(
    _ engineLink: SessionLinkID, at address: Address, bootID: UInt64, _ now: Instant,
    _ out: inout [Output]
  ) {
    guard let owner = keyOwners[engineLink.key], let entry = channels[owner.channel] else {
      return
    }
    let link = LinkID(channel: owner.channel, peer: engineLink.peer)
    guard owner.number == entry.key.number, !isStranger(link.peer, in: link.channel) else {
      guard peers[link] == nil else {
        // One link at a time: the other would stand after this one is gone, and tell nothing.
        if peers[link]?.key != engineLink.key { retired[engineLink] = now + Self.retirement }
        return
      }
      visitors[engineLink] = Visitor(since: now, bootID: bootID, nextAt: now)
      serve(engineLink, at: now, &out)
      return
    }
    visitors[engineLink] = nil
    if let index = peers.index(of: link), peers[at: index].bootID == bootID {
      // The same pair under the new key: everything else goes on as it is.
      let former = SessionLinkID(key: peers[at: index].key, peer: link.peer)
      peers[at: index].key = engineLink.key
      if former != engineLink { retired[former] = now + Self.retirement }
      return
    }
    lapsed[engineLink] = nil
    linkDown(link, .replaced, at: now, &out)
    guard entry.state.hasRoom(for: link.peer) else {
      perform(links.close(engineLink, reason: .local, at: now), at: now, &out)
      return
    }
    linkUp(link, key: engineLink.key, bootID: bootID, at: address, now, &out)
  }

  private mutating func linkUp(
    _ link: LinkID, key: KeyID, bootID: UInt64, at address: Address, _ now: Instant,
    _ out: inout [Output]
  ) {
    peers[link] = Peer(key: key, bootID: bootID, upSince: now)
    discovery.setLinked(linkedPeers)
    _ = channels.update(link.channel) { $0.refusals = [] }
    let relay = relayedPaths[address]?.relay
    out.append(
      .event(
        .linkUp(link.peer, relay == nil ? address : nil, via: relay), in: link.channel))
    pathChanged(of: link, to: address, at: now, &out)
    out += change(link.channel, at: now) { $0.linkUp(link.peer, bootID: bootID, at: now) }
    updateMedia(in: link.channel, at: now, &out)
    tick(peer: link, at: now, &out)
  }

  private mutating func closed(
    _ engineLink: SessionLinkID, _ reason: LinkCloseReason, at now: Instant, _ out: inout [Output]
  ) {
    visitors[engineLink] = nil
    retired[engineLink] = nil
    let lapse = lapsed[engineLink]
    lapsed[engineLink] = nil
    guard let owner = keyOwners[engineLink.key] else { return }
    if let lapse, reason == .timedOut, let key = channels[owner.channel]?.key.key.keyID {
      // The session is given up as well; whether the peer is there is asked a while longer.
      perform(
        links.connect(
          to: engineLink.peer, bootID: lapse.bootID, in: key, at: lapse.address, now: now),
        at: now, &out)
    }
    let link = LinkID(channel: owner.channel, peer: engineLink.peer)
    guard peers[link]?.key == engineLink.key else { return }
    linkDown(link, reason, at: now, &out)
  }

  private mutating func linkDown(
    _ link: LinkID, _ reason: LinkCloseReason, at now: Instant, _ out: inout [Output]
  ) {
    guard peers[link] != nil else { return }
    // Whoever is the last to fall silent in a call is missed for a while.
    if reason == .timedOut, peers[link]?.incoming != nil {
      _ = channels.update(link.channel) { $0.lostOthersAt = now }
    }
    endMedia(with: link, at: now, &out)
    peers[link] = nil
    discovery.setLinked(linkedPeers)
    seenChanged()
    // Others may have been reached through this one.
    _ = channels.update(link.channel) { $0.relaySearchAt = now }
    if reason == .timedOut { perform(discovery.seek(at: now), at: now, &out) }
    out.append(.event(.linkDown(link.peer, reason), in: link.channel))
    let leaveReason: LeaveReason =
      switch reason {
      case .left, .local: .left
      case .timedOut: .crashed
      case .replaced: .replaced
      }
    out += change(link.channel, at: now) {
      $0.linkDown(link.peer, reason: leaveReason, at: now)
    }
    selectLayers(at: now, &out)
    updateCallState(in: link.channel, at: now, &out)
  }

  /// A neighbour has not answered: it counts as gone, for the call and for everyone who is told.
  /// Its session stays as long as the link engine keeps it: a peer that only moved or slept is back
  /// with its first datagram, without a handshake.
  mutating func fail(_ link: LinkID, at now: Instant, _ out: inout [Output]) {
    guard let peer = peers[link] else { return }
    let engineLink = SessionLinkID(key: peer.key, peer: link.peer)
    if let address = links.address(of: engineLink) {
      lapsed[engineLink] = Lapse(since: now, bootID: peer.bootID, address: address)
    }
    linkDown(link, .timedOut, at: now, &out)
  }

  /// Takes back those given up that have been heard since.
  mutating func revive(at now: Instant, _ out: inout [Output]) {
    for link in lapsed.keys {
      guard let lapse = lapsed[link], let heard = links.lastHeard(link), heard > lapse.since,
        let address = links.address(of: link)
      else { continue }
      lapsed[link] = nil
      established(link, at: address, bootID: lapse.bootID, now, &out)
    }
  }

  // MARK: Payloads

  /// A payload that came over one of the engine's links, opened and fresh.
  private mutating func receive(
    _ payload: [UInt8], over engineLink: SessionLinkID, at now: Instant, _ out: inout [Output]
  ) {
    guard let owner = keyOwners[engineLink.key] else { return }
    let link = LinkID(channel: owner.channel, peer: engineLink.peer)
    guard peers.index(of: link) != nil else {
      receive(payload, fromVisitor: engineLink, at: now, &out)
      return
    }
    switch PayloadKind(of: payload) {
    case .rtp: receiveRTP(payload, over: link, at: now, &out)
    case .rtcp: receiveRTCP(payload, over: link, at: now, &out)
    case .relay: receiveRelayed(payload, over: link, at: now, &out)
    case .control:
      guard let messages = try? Control.decode(payload) else { return }
      receive(messages, over: link, at: now, &out)
    case .keepalive, .path, nil: break
    }
  }

  /// Of wishes in one payload the last one counts, of pings the first few: nothing makes a node
  /// work or answer a hundred times for one datagram.
  private mutating func receive(
    _ messages: [Control], over link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    var requested: RequestedResolution?
    var pings = 0
    for message in messages {
      switch message {
      case .requested(let newest): requested = newest
      case .ping:
        pings += 1
        if pings <= Self.pingsAtOnce { receive(message, over: link, at: now, &out) }
      default: receive(message, over: link, at: now, &out)
      }
    }
    if let requested { receive(.requested(requested), over: link, at: now, &out) }
  }

  private static let pingsAtOnce = 4

  /// A visitor gets answers that keep its link, and nothing of the channel.
  private mutating func receive(
    _ payload: [UInt8], fromVisitor visitor: SessionLinkID, at now: Instant, _ out: inout [Output]
  ) {
    guard visitors.index(of: visitor) != nil, PayloadKind(of: payload) == .control,
      let messages = try? Control.decode(payload)
    else { return }
    for message in messages.prefix(Self.pingsAtOnce) {
      switch message {
      case .ping(let token): sendRaw([.pong(token)], over: visitor, at: now, &out)
      case .entry(let bytes): receiveCredential(bytes, from: visitor, at: now, &out)
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
    case .requested(let requested):
      let changed =
        peers.update(link) { peer in
          // Repeated with each ping: one that is left out is one that is late.
          guard peer.requested != requested, peer.subscriptionBudget.take(at: now) else {
            return false
          }
          peer.requested = requested
          return true
        } ?? false
      if changed { selectLayers(at: now, &out) }
    case .ping(let token): send([.pong(token)], over: link, at: now, &out)
    case .pong(let token):
      _ = peers.update(link) { $0.receivePong(token, at: now) }
      if let roundTrip = peers[link]?.roundTrip {
        _ = peers.update(link) { $0.incoming?.video.setRoundTrip(roundTrip) }
      }
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
    send(Control.encode(messages), [], over: link, at: now, &out)
  }

  /// Seals a header and a body as one datagram; false when the link has no session.
  @discardableResult
  mutating func send(
    _ header: [UInt8], _ body: ArraySlice<UInt8>, over link: LinkID, at now: Instant,
    _ out: inout [Output]
  ) -> Bool {
    guard let index = peers.index(of: link) else { return false }
    let engineLink = SessionLinkID(key: peers[at: index].key, peer: link.peer)
    guard let sealed = links.seal(header, body, on: engineLink, at: now) else { return false }
    send(sealed.datagram, to: sealed.to, at: now, &out)
    return true
  }

  /// Seals control messages for one of the engine's links.
  mutating func sendRaw(
    _ messages: [Control], over engineLink: SessionLinkID, at now: Instant, _ out: inout [Output]
  ) {
    let payload = Control.encode(messages)
    guard let sealed = links.seal(payload, [], on: engineLink, at: now) else { return }
    send(sealed.datagram, to: sealed.to, at: now, &out)
  }

  // MARK: Time

  /// Pings, parts with strangers, reports and asks again where something is due.
  mutating func tick(peer link: LinkID, at now: Instant, _ out: inout [Output]) {
    guard let index = peers.index(of: link) else { return }
    if let due = peers[at: index].nextKeyAt, due <= now { offerKey(over: link, at: now, &out) }
    if peers[at: index].nextPing <= now {
      let isInCall = peers[at: index].incoming != nil
      peers[at: index].nextPing =
        now + (isInCall ? configuration.pingInterval : configuration.idlePingInterval)
      var messages: [Control] = [.ping(UInt64(bitPattern: now.nanoseconds))]
      // Repeated with every ping, so that a lost wish is a wish delayed.
      if let incoming = peers[at: index].incoming {
        messages.append(.requested(incoming.requested))
      }
      send(messages, over: link, at: now, &out)
    }
    if let due = peers[at: index].nextCheckAt, due <= now {
      checkStanding(of: link, at: now, &out)
    }
    tickMedia(of: link, at: now, &out)
  }

  /// Whether the neighbour is still a member, and still one to have a link with.
  private mutating func checkStanding(
    of link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    _ = peers.update(link) { $0.nextCheckAt = now + Peer.checkInterval }
    signalRelayLoad(at: now, &out)
    dismissStranger(link, at: now, &out)
    guard let peer = peers[link], let state = channels[link.channel]?.state,
      now - peer.upSince > Self.trimPatience, !state.wantsLink(to: link.peer)
    else { return }
    perform(
      links.close(SessionLinkID(key: peer.key, peer: link.peer), reason: .local, at: now), at: now,
      &out)
  }

  /// How long a link beyond those wanted stands: by then both ends know the same members.
  static let trimPatience = Duration.seconds(10)
}
