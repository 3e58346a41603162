import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterLink
import MusterMedia
import MusterWire

/// The handling of datagrams from peers, and of the outputs of discovery, the link engine and the
/// associations.
extension Node {
  /// Executes the outputs of discovery.
  mutating func perform(_ outputs: [Discovery.Output], at now: Instant, _ out: inout [Output]) {
    for output in outputs {
      switch output {
      case .broadcast(let datagram): out.append(.broadcast(datagram))
      case .send(let datagram, let address): out.append(.send(datagram, to: address))
      case .found(let peer, let bootID, let key, let address):
        let session = SessionLinkID(key: key, peer: peer)
        guard mayConnect(session, bootID: bootID, at: address, now) else { continue }
        connect(session, bootID: bootID, over: .direct(address), at: now, &out)
      case .silent(let peer, let key, let addresses):
        guard let link = keyring.link(of: SessionLinkID(key: key, peer: peer)),
          isUnknown(link)
        else { continue }
        out.append(.event(.unreached(peer, tried: addresses), in: link.channel))
      case .twin(let key, let address):
        let own = SessionLinkID(key: key, peer: id)
        guard let link = keyring.link(of: own), !hasTwin else { continue }
        hasTwin = true
        out.append(.event(.twin(address), in: link.channel))
      }
    }
  }

  /// Whether nothing was heard of a peer in a channel of which this node is a member. One that was
  /// heard has left, or is reached through others.
  private func isUnknown(_ link: LinkID) -> Bool {
    guard let state = channels[link.channel]?.state, !state.hasLostMembership else { return false }
    return state.member(link.peer) == nil && state.announcedBootID(of: link.peer) == nil
  }

  private mutating func mayConnect(
    _ session: SessionLinkID, bootID: UInt64, at address: Address, _ now: Instant
  ) -> Bool {
    guard peers.count < Limits.links, let link = keyring.link(of: session),
      !isRefused(link, bootID: bootID, at: now), let state = channels[link.channel]?.state
    else { return false }
    // A linked peer needs a further link only under the key in force.
    guard peers.index(of: link) == nil else { return keyring.isCurrent(session.key) }
    let fits =
      state.hasRoom(for: link.peer) || linkToReplace(by: link, over: .direct(address)) != nil
    return fits && state.wantsLink(to: link.peer)
  }

  /// Begins a handshake with this run of a peer under the key in force.
  mutating func connect(
    _ link: LinkID, bootID: UInt64, over route: Route, at now: Instant, _ out: inout [Output]
  ) {
    guard let key = keyring.current(of: link.channel)?.key.keyID else { return }
    let session = SessionLinkID(key: key, peer: link.peer)
    connect(session, bootID: bootID, over: route, at: now, &out)
  }

  private mutating func connect(
    _ session: SessionLinkID, bootID: UInt64, over route: Route, at now: Instant,
    _ out: inout [Output]
  ) {
    if let link = keyring.link(of: session) { associations.connecting(link, at: now) }
    perform(
      links.connect(to: session.peer, bootID: bootID, in: session.key, over: route, now: now),
      at: now, &out)
  }

  /// Executes the outputs of the link engine.
  mutating func perform(_ outputs: [LinkEngine.Output], at now: Instant, _ out: inout [Output]) {
    for output in outputs {
      switch output {
      case .send(let datagram, let route): send(datagram, over: route, at: now, &out)
      case .established(let session, let route, let bootID):
        established(session, over: route, bootID: bootID, at: now, &out)
      case .moved(let session, let route):
        guard let link = associations.usedLink(of: session),
          associations.session(of: link) == session
        else { continue }
        discovery.setLinked(linkedPeers)
        pathChanged(of: link, to: route, at: now, &out)
      case .delivered(let session, let payload, let route, let packet):
        receivePayload(payload, packet, over: session, route, at: now, &out)
      case .closed(let session, let reason):
        congestion.closed(session)
        perform(associations.closed(session, reason), at: now, &out)
      }
    }
  }

  /// Executes the outputs of the associations.
  mutating func perform(
    _ outputs: [Associations.Output], at now: Instant, _ out: inout [Output]
  ) {
    for output in outputs {
      switch output {
      case .up(let session, let link, let bootID, let route):
        associations.begin(link, on: session, bootID: bootID, at: now)
        linkUp(link, over: route, at: now, &out)
      case .down(let link, let reason): linkDown(link, reason, at: now, &out)
      case .close(let session):
        perform(links.close(session, reason: .local, at: now), at: now, &out)
      case .connect(let link, let bootID, let route):
        connect(link, bootID: bootID, over: route, at: now, &out)
      case .exchangeCredentials(let session):
        exchangeCredentials(over: session, at: now, &out)
      }
    }
  }

  /// Handles a datagram of a link, received directly or in a relay's envelope.
  mutating func receiveLinkDatagram(
    _ datagram: [UInt8], over route: Route, arrivedAt: Instant, at now: Instant,
    _ out: inout [Output]
  ) {
    // Reuses the output array of the last datagram. A datagram in a relay envelope is handled while
    // that array is in use, and gets a new array.
    var outputs: [LinkEngine.Output] = []
    swap(&outputs, &linkOutputs)
    links.receive(datagram, from: route, arrivedAt: arrivedAt, at: now, into: &outputs)
    perform(outputs, at: now, &out)
    outputs.removeAll(keepingCapacity: true)
    linkOutputs = outputs
    guard associations.hasSuspended else { return }
    for revived in associations.revivable(lastHeard: { links.lastHeard($0) }) {
      guard let route = links.route(of: revived.session) else { continue }
      established(revived.session, over: route, bootID: revived.bootID, at: now, &out)
    }
  }

  /// The peers with a working direct path, for which discovery need not search.
  var linkedPeers: [(peer: SessionLinkID, address: Address)] {
    peers.keys.compactMap { link in
      guard !relaying.isUnreachable(link), let session = associations.session(of: link),
        let address = links.route(of: session)?.address
      else { return nil }
      return (session, address)
    }
  }

  // MARK: Establishment and closure

  mutating func established(
    _ session: SessionLinkID, over route: Route, bootID: UInt64, at now: Instant,
    _ out: inout [Output]
  ) {
    guard let link = keyring.link(of: session), channels[link.channel] != nil else { return }
    let isKeyCurrent = keyring.isCurrent(session.key)
    let isMember = isMember(link.peer, in: link.channel)
    if isKeyCurrent, isMember, let other = linkToReplace(by: link, over: route) {
      close(other, at: now, &out)
    }
    let eligibility = Associations.Eligibility(
      isKeyCurrent: isKeyCurrent, isMember: isMember,
      hasRoom: channels[link.channel]?.state.hasRoom(for: link.peer) ?? false)
    perform(
      associations.established(
        session, in: link.channel, bootID: bootID, over: route, eligibility, at: now),
      at: now, &out)
  }

  /// The link that gives way to a new one where a channel has no room: the newest of those from the
  /// address that has most, unless that of the new one had as many then. Keys cost nothing, and a
  /// member may invent as many others as there is room for; addresses cost a little.
  private func linkToReplace(by link: LinkID, over route: Route) -> LinkID? {
    guard let state = channels[link.channel]?.state, !state.hasRoom(for: link.peer) else {
      return nil
    }
    var newest: [(origin: LinkOrigin, count: Int, link: LinkID, since: Instant)] = []
    for (other, peer) in peers where other.channel == link.channel {
      guard let origin = associations.session(of: other).flatMap({ links.route(of: $0) }) else {
        continue
      }
      let one = (origin: LinkOrigin(origin), count: 1, link: other, since: peer.upSince)
      if let index = newest.firstIndex(where: { $0.origin == one.origin }) {
        let count = newest[index].count + 1
        if newest[index].since <= one.since { newest[index] = one }
        newest[index].count = count
      } else {
        newest.append(one)
      }
    }
    let origin = LinkOrigin(route)
    let count = newest.first { $0.origin == origin }?.count ?? 0
    guard let most = newest.max(by: { $0.count < $1.count }), most.count > count + 1 else {
      return nil
    }
    return most.link
  }

  private mutating func linkUp(
    _ link: LinkID, over route: Route, at now: Instant, _ out: inout [Output]
  ) {
    guard let bootID = peers[link]?.bootID else { return }
    let announced = channels[link.channel]?.state.announcedBootID(of: link.peer)
    _ = peers.update(link) { $0.announcedBootID = announced }
    media.linkUp(link, at: now)
    discovery.setLinked(linkedPeers)
    showLinks(in: link.channel, &out)
    sendCredentials(over: link, at: now, &out)
    pathChanged(of: link, to: route, at: now, &out)
    out += change(link.channel, at: now) { $0.linkUp(link.peer, bootID: bootID, at: now) }
    updateMedia(in: link.channel, at: now, &out)
    pingDuePaths(at: now, &out)
    tick(peer: link, at: now, &out)
  }

  /// Reports the links that the host has not heard of; none while this node, to its knowledge, is
  /// no member: over them it gets the reason for that, or a role.
  mutating func showLinks(in channel: ChannelID, _ out: inout [Output]) {
    guard let state = channels[channel]?.state, !state.hasLostMembership else { return }
    for link in peers.keys where link.channel == channel && !(peers[link]?.isShown ?? true) {
      guard let route = associations.session(of: link).flatMap({ links.route(of: $0) }) else {
        continue
      }
      _ = peers.update(link) { $0.isShown = true }
      out.append(.event(.linkUp(link.peer, route.address, via: route.relay), in: channel))
    }
  }

  private mutating func linkDown(
    _ link: LinkID, _ reason: LinkCloseReason, at now: Instant, _ out: inout [Output]
  ) {
    perform(media.linkDown(link, at: now), at: now, &out)
    let wasShown = peers[link]?.isShown ?? false
    associations.end(link)
    discovery.setLinked(linkedPeers)
    seenChanged()
    relaying.linkDown(link, at: now)
    if reason == .timedOut { perform(discovery.seek(at: now), at: now, &out) }
    if reason == .replaced || reason == .timedOut { congestion.interrupted(link.peer) }
    if wasShown { out.append(.event(.linkDown(link.peer, reason), in: link.channel)) }
    let leaveReason: LeaveReason =
      switch reason {
      case .left, .local: .left
      case .timedOut: .crashed
      case .replaced: .replaced
      }
    out += change(link.channel, at: now) {
      $0.linkDown(link.peer, reason: leaveReason, at: now)
    }
    updateCallState(in: link.channel, at: now, &out)
  }

  /// Suspends a neighbour that has stopped answering: the neighbour counts as gone in the call and
  /// in this node's neighbour reports. If the neighbour only changed networks or slept, its first
  /// datagram restores the association without a handshake.
  mutating func fail(_ link: LinkID, at now: Instant, _ out: inout [Output]) {
    let route = associations.session(of: link).flatMap { links.route(of: $0) }
    perform(associations.suspend(link, route: route, at: now), at: now, &out)
  }
}
