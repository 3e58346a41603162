import MusterBase
import MusterChannel
import MusterDiscovery
import MusterLink
import MusterWire

/// The inputs and outputs of the search for relays, and the forwarding of datagrams for peers.
///
/// A datagram that arrived over a relayed path is not relayed again, which limits paths to two
/// hops.
extension Node {
  /// The period before a path change whose video is resent: an upper bound of the time needed to
  /// detect the loss of a path and to find another path.
  private static let repeatedTime = Duration.milliseconds(400)

  // MARK: The search for relays

  /// Searches for paths to unreachable members of the channel's call.
  mutating func searchRelays(
    in channel: ChannelID, at now: Instant, _ out: inout [Output]
  ) {
    let outputs = relaying.search(in: channel, relayView(of: channel, at: now), at: now)
    perform(outputs, at: now, &out)
  }

  mutating func perform(
    _ outputs: [Relaying.Output], at now: Instant, _ out: inout [Output]
  ) {
    for output in outputs {
      switch output {
      case .check(let link):
        guard let session = associations.session(of: link) else { continue }
        perform(links.check(session, at: now), at: now, &out)
      case .probe(let link, let route):
        guard let session = associations.session(of: link) else { continue }
        perform(links.probe(session, over: route, now: now), at: now, &out)
      case .connect(let link, let bootID, let route):
        connect(link, bootID: bootID, over: route, at: now, &out)
      case .sendCandidates(let link):
        send([.candidates(discovery.reachableAddresses)], over: link, at: now, &out)
      case .seek: perform(discovery.seek(at: now), at: now, &out)
      case .reachabilityChanged: discovery.setLinked(linkedPeers)
      }
    }
  }

  /// The state of the channel's call for the search; nil outside of a call.
  private mutating func relayView(of channel: ChannelID, at now: Instant) -> RelayView? {
    guard let state = channels[channel]?.state, let call = state.ownMember.call else { return nil }
    var view = RelayView(
      own: id, channel: channel, neighbours: { state.neighbours(of: $0) })
    for (link, peer) in peers where link.channel == channel {
      guard let path = path(of: link) else { continue }
      view.links[link.peer] = RelayView.Link(
        route: path.route, roundTrip: links.paths.roundTrip(path),
        liveness: links.paths[path]?.liveness,
        lastDirectAddress: links.paths.lastDirectRoute(to: link.peer),
        flags: state.member(link.peer)?.flags ?? [])
      // A neighbour whose presence has another boot id than its link is not in the roster.
      guard let announced = state.announcedBootID(of: link.peer), announced != peer.bootID,
        announced != peer.announcedBootID
      else { continue }
      view.members.append(viewed(link, bootID: announced, hasRestarted: true, at: now))
    }
    for member in state.members where member.call == call {
      let link = LinkID(channel: channel, peer: member.id)
      guard !view.members.contains(where: { $0.id == member.id }) else { continue }
      view.members.append(viewed(link, bootID: member.bootID, hasRestarted: false, at: now))
    }
    return view
  }

  private func viewed(
    _ link: LinkID, bootID: UInt64, hasRestarted: Bool, at now: Instant
  ) -> RelayView.Member {
    RelayView.Member(
      id: link.peer, bootID: bootID, hasRestarted: hasRestarted,
      isRefused: isRefused(link, bootID: bootID, at: now),
      lastDirectAddress: links.paths.lastDirectRoute(to: link.peer))
  }

  // MARK: The path of a link

  /// The path that an association uses; nil if the association is not in use.
  func path(of link: LinkID) -> PathID? {
    associations.session(of: link).flatMap { links.path(of: $0) }
  }

  /// The smoothed round trip of the path in use; nil before the first measurement.
  func roundTrip(of link: LinkID) -> Duration? {
    path(of: link).flatMap { links.paths.roundTrip($0) }
  }

  /// Whether a link uses a path through another member.
  func isRelayed(_ link: LinkID) -> Bool { relay(of: link) != nil }

  /// The member that relays a link; nil for a direct link.
  func relay(of link: LinkID) -> NodeID? { path(of: link)?.route.relay }

  /// Handles a new path of a link, or a new link.
  mutating func pathChanged(
    of link: LinkID, to route: Route, at now: Instant, _ out: inout [Output]
  ) {
    relaying.pathChanged(of: link, to: route, at: now)
    pingIfUnmeasured(link, at: now)
    if let address = route.address {
      send([.seen(address)], over: link, at: now, &out)
    } else {
      _ = peers.update(link) { $0.seesThisNodeAt = nil }
      seenChanged()
    }
    let queued = congestion.takeQueue(of: link)
    updateBandwidthForNewPath(of: link, at: now, &out)
    if !route.isDirect || relaying.isUnreachable(link) {
      // The packets that were queued are among those that are resent.
      let start = now + (.zero - Self.repeatedTime)
      perform(media.repeatFrames(over: link, since: start, at: now), at: now, &out)
    } else {
      perform(queued.map { .queue($0.item, $0.priority) }, at: now, &out)
    }
  }

  /// Passes this node's addresses as observed by neighbours to discovery.
  mutating func seenChanged() {
    discovery.setSeenByNeighbours(peers.compactMap { $0.value.seesThisNodeAt })
  }

  /// Handles this node's address as observed by a neighbour; behind a NAT, this is the external
  /// address.
  mutating func receiveSeen(_ address: Address, over link: LinkID, at now: Instant) {
    // This node already knows its own loopback and link-local addresses.
    guard !isRelayed(link), address.isUnicast, address.reach != .link else { return }
    _ = peers.update(link) { $0.seesThisNodeAt = address }
    seenChanged()
  }

  /// Handles the candidates of a member whose path is relayed.
  mutating func receiveCandidates(
    _ addresses: [Address], over link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    guard isRelayed(link), relaying.takeCandidates(over: link, at: now),
      let session = associations.session(of: link)
    else { return }
    perform(discovery.learned(session, of: addresses, at: now), at: now, &out)
  }

  // MARK: Datagrams over relays

  /// Sends a datagram of the link engine, in an envelope if the route is relayed. An envelope has
  /// the class of its datagram as far as the relay, which does not know it.
  mutating func send(
    _ datagram: [UInt8], as serviceClass: ServiceClass = .standard, over route: Route,
    at now: Instant, _ out: inout [Output]
  ) {
    switch route {
    case .direct(let address): out.append(.send(datagram, to: address, as: serviceClass))
    case .relayed(let peer, let relay, let channel):
      let link = LinkID(channel: channel, peer: relay)
      guard datagram.count <= RelayEnvelope.datagramLimit, !isRelayed(link) else {
        relaying.counters.unsent &+= 1
        return
      }
      let header = RelayEnvelope.header(.forward, peer.key.prefix)
      send(
        OutgoingPayload(.bytes(header), datagram[...]), as: serviceClass, over: link, at: now, &out)
    }
  }

  /// Relays an envelope to another neighbour, or receives the datagram that a relay forwarded.
  mutating func receiveEnvelope(
    _ payload: [UInt8], over link: LinkID, arrivedAt: Instant, at now: Instant,
    _ out: inout [Output]
  ) {
    guard !isRelayed(link), let envelope = try? RelayEnvelope(decoding: payload) else {
      relaying.counters.refused &+= 1
      return
    }
    switch envelope.direction {
    case .forward:
      guard let target = neighbour(envelope.member, in: link.channel), target != link,
        !isRelayed(target), configuration.relays
      else {
        relaying.counters.refused &+= 1
        return
      }
      guard
        let leavesAt = relaying.budget.take(
          payload.count, from: link.peer, to: target.peer, in: link.channel, at: now)
      else {
        relaying.counters.overBudget &+= 1
        return
      }
      let relayed = RelayedDatagram(
        datagram: envelope.datagram, sender: link.peer, target: target)
      if leavesAt <= now {
        relay(relayed, at: now, &out)
      } else {
        relaying.queue.schedule(relayed, at: leavesAt)
      }
    case .forwarded:
      guard let state = channels[link.channel]?.state,
        let member = state.members.first(where: { $0.id.key.prefix == envelope.member })
      else {
        relaying.counters.refused &+= 1
        return
      }
      let route = Route.relayed(to: member.id, by: link.peer, in: link.channel)
      let datagram = Array(envelope.datagram)
      switch DatagramKind(of: datagram) {
      case .handshakeInitiation, .handshakeResponse, .cookieReply, .data:
        receiveLinkDatagram(datagram, over: route, arrivedAt: arrivedAt, at: now, &out)
      default: break
      }
    }
  }

  private mutating func relay(
    _ relayed: RelayedDatagram, at now: Instant, _ out: inout [Output]
  ) {
    let header = RelayEnvelope.header(.forwarded, relayed.sender.key.prefix)
    send(OutgoingPayload(.bytes(header), relayed.datagram), over: relayed.target, at: now, &out)
  }

  /// Relays the datagrams that have waited for their budget.
  mutating func relayQueued(at now: Instant, _ out: inout [Output]) {
    while let relayed = relaying.queue.popDue(at: now) {
      // The link may have been closed or have moved to a relay meanwhile.
      guard path(of: relayed.target)?.route.isDirect == true else {
        relaying.counters.refused &+= 1
        continue
      }
      relay(relayed, at: now, &out)
    }
  }

  private func neighbour(_ prefix: UInt64, in channel: ChannelID) -> LinkID? {
    peers.keys.first { $0.channel == channel && $0.peer.key.prefix == prefix }
  }

  /// Updates the presence flag `relaysMuch` if the load from relaying has become high or is no
  /// longer high.
  mutating func signalRelayLoad(at now: Instant, _ out: inout [Output]) {
    let isLoadHigh = relaying.budget.isLoadHigh(at: now)
    guard isLoadHigh != media.local.flags.contains(.relaysMuch) else { return }
    out += change(at: now) { $0.set(.relaysMuch, to: isLoadHigh) }
  }

  /// The pairs of members whose packets this node has relayed within the last 3 s.
  public func relayedPairs(at now: Instant) -> [RelayedPair] { relaying.budget.carried(at: now) }
}
