import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterLink
import MusterWire

/// Ways through a neighbour to members of a call who cannot be reached, and back to a way of one's
/// own.
///
/// The one that misses the other asks for an answer through a neighbour of both; the other's path
/// follows. Of two, the one with the smaller id is first, so that both do not pull in different
/// directions.
extension Node {
  /// At least so often it is looked at who is missing: somebody may have joined the call.
  private static let lookInterval = Duration.milliseconds(250)
  /// How long a first, direct way is given to come about.
  private static let directPatience = Duration.milliseconds(750)
  /// By how much the one with the larger id is more patient.
  private static let secondPatience = Duration.milliseconds(150)
  /// A relay is given a round trip, and this, before the next one is tried.
  private static let relayPatience = Duration.milliseconds(250)
  /// What a neighbour says of its round trip is its own word.
  private static let longestRelayRoundTrip = Duration.milliseconds(500)
  /// For a round trip that is not known yet.
  private static let unmeasured = Duration.milliseconds(100)
  /// All have been tried in vain: they are left alone for so long.
  private static let relayRest = Duration.seconds(1)

  /// Looks for ways to members of the call to whom nothing gets through, and says when to look
  /// again; nil outside of a call.
  mutating func findRelays(
    in channel: ChannelID, at now: Instant, _ out: inout [Output]
  ) -> Instant? {
    guard let entry = channels[channel], let call = entry.state.ownMember.call else {
      forgetUnreachable(in: channel)
      return nil
    }
    for link in unreachable.keys where link.channel == channel {
      if entry.state.member(link.peer) == nil { found(link) }
    }
    var next = now + Self.lookInterval
    for member in entry.state.members {
      let link = LinkID(channel: channel, peer: member.id)
      guard member.call == call else {
        found(link)
        continue
      }
      next = min(next, seek(member, over: link, at: now, &out))
    }
    return max(next, now + .milliseconds(1))
  }

  /// Does what is due for one member, and says when to come back to it.
  private mutating func seek(
    _ member: Member, over link: LinkID, at now: Instant, _ out: inout [Output]
  ) -> Instant {
    guard let peer = peers[link] else {
      guard id < member.id, !isDenied(link, at: now) else {
        found(link)
        return now + Self.lookInterval
      }
      return findRelay(to: member, over: link, from: now + Self.directPatience, at: now, &out)
    }
    guard let liveness = links.liveness(of: SessionLinkID(key: peer.key, peer: link.peer)) else {
      return now + Self.lookInterval
    }
    // What leads through somebody who is gone leads nowhere.
    let isCutOff = relay(of: link).map { peers[LinkID(channel: link.channel, peer: $0)] == nil }
    if !(isCutOff ?? false) {
      let lostAt = lostAt(link, peer, liveness)
      if liveness.lateAt > now || lostAt > now {
        if liveness.lateAt <= now { ask(link, since: liveness.lastAt, at: now, &out) }
        found(link)
        let next = probeDirectPath(around: link, at: now, &out)
        return min(next, liveness.lateAt > now ? liveness.lateAt : lostAt)
      }
    }
    return findRelay(to: member, over: link, from: now, at: now, &out)
  }

  private func lostAt(_ link: LinkID, _ peer: Peer, _ liveness: PathLiveness) -> Instant {
    liveness.lostAt(roundTrip: peer.roundTrip ?? Self.unmeasured)
      + (id < link.peer ? .zero : Self.secondPatience)
  }

  /// Whether nothing has come over a link for longer than usual.
  private func isLost(_ link: LinkID, at now: Instant) -> Bool {
    guard let peer = peers[link],
      let liveness = links.liveness(of: SessionLinkID(key: peer.key, peer: link.peer))
    else { return true }
    return liveness.lostAt(roundTrip: peer.roundTrip ?? Self.unmeasured) <= now
  }

  /// A peer that has become quiet may have nothing to say, which its answer shows.
  private mutating func ask(
    _ link: LinkID, since: Instant, at now: Instant, _ out: inout [Output]
  ) {
    guard peers[link].map({ $0.askedAt < since }) ?? false else { return }
    _ = peers.update(link) { $0.askedAt = now }
    send([.ping(UInt64(bitPattern: now.nanoseconds))], over: link, at: now, &out)
  }

  /// Nobody is missed there any more.
  private mutating func found(_ link: LinkID) {
    guard unreachable.index(of: link) != nil else { return }
    unreachable[link] = nil
    discovery.setLinked(linkedPeers)
  }

  /// Outside of a call, or of the channel, nobody is missed.
  mutating func forgetUnreachable(in channel: ChannelID) {
    for link in unreachable.keys where link.channel == channel { found(link) }
  }

  // MARK: Relays

  private mutating func findRelay(
    to member: Member, over link: LinkID, from start: Instant, at now: Instant,
    _ out: inout [Output]
  ) -> Instant {
    var one: UnreachablePeer
    if let known = unreachable[link] {
      one = known
    } else {
      // The one that was lost just now is no candidate.
      one = UnreachablePeer(nextAt: start, tried: relay(of: link).map { [$0] } ?? [])
      unreachable[link] = one
      discovery.setLinked(linkedPeers)
      // It may have moved, and say so at a rendezvous.
      perform(discovery.seek(at: now), at: now, &out)
    }
    guard one.nextAt <= now, let key = channels[link.channel]?.key.key.keyID else {
      return one.nextAt
    }
    let relays = relays(to: member.id, in: link.channel, at: now)
    one.nextAt = now + (relays.isEmpty ? Self.lookInterval : Self.relayRest)
    if let relay = relays.first(where: { !one.tried.contains($0) }) {
      one.tried.append(relay)
      let roundTrip = peers[LinkID(channel: link.channel, peer: relay)]?.roundTrip
      one.nextAt =
        now + Self.relayPatience + min(roundTrip ?? Self.relayPatience, Self.longestRelayRoundTrip)
        * 2
      let address = relayedPaths.address(
        of: RelayedPath(channel: link.channel, relay: relay, target: member.id))
      let outputs =
        if let peer = peers[link] {
          links.probe(SessionLinkID(key: peer.key, peer: link.peer), at: address, now: now)
        } else {
          links.connect(to: member.id, bootID: member.bootID, in: key, at: address, now: now)
        }
      perform(outputs, at: now, &out)
    } else {
      one.tried = []
    }
    unreachable[link] = one
    return one.nextAt
  }

  /// Neighbours of both who relay; those first who are heard themselves, then the least laden, then
  /// the nearest.
  private func relays(to member: NodeID, in channel: ChannelID, at now: Instant) -> [NodeID] {
    let neighboursOfBoth = channels[channel]?.state.neighbours(neighbourReport: member) ?? []
    var usable: [(id: NodeID, rank: Int, roundTrip: Duration)] = []
    for hearer in neighboursOfBoth {
      let link = LinkID(channel: channel, peer: hearer)
      let flags = channels[channel]?.state.member(hearer)?.flags ?? []
      guard peers[link] != nil, !isRelayed(link), !flags.contains(.declinesRelaying) else {
        continue
      }
      let rank = (isLost(link, at: now) ? 2 : 0) + (flags.contains(.relaysMuch) ? 1 : 0)
      usable.append((hearer, rank, roundTrip(hearer, channel)))
    }
    usable.sort { a, b in
      if a.rank != b.rank { return a.rank < b.rank }
      return a.roundTrip == b.roundTrip ? a.id < b.id : a.roundTrip < b.roundTrip
    }
    return usable.map(\.id)
  }

  private func roundTrip(_ member: NodeID, _ channel: ChannelID) -> Duration {
    peers[LinkID(channel: channel, peer: member)]?.roundTrip ?? .seconds(1)
  }

  // MARK: A way of one's own

  /// How long it takes at most to notice that a path is lost, and to find another.
  private static let repeatedTime = Duration.milliseconds(400)

  /// While a link leads through somebody, both ends tell each other where they may be reached, and
  /// try the address that was good before: so the direct way is found when it opens, with no
  /// rendezvous either.
  private mutating func probeDirectPath(
    around link: LinkID, at now: Instant, _ out: inout [Output]
  ) -> Instant {
    guard let peer = peers[link], isRelayed(link) else { return now + Self.lookInterval }
    guard peer.nextTryAt <= now else { return peer.nextTryAt }
    let interval = max(peer.tryInterval, min(peer.tryInterval * 1.5, Peer.longestTryInterval))
    _ = peers.update(link) {
      $0.tryInterval = interval
      $0.nextTryAt = now + interval
    }
    send([.candidates(discovery.reachableAddresses)], over: link, at: now, &out)
    if let address = peer.directAddress {
      let engineLink = SessionLinkID(key: peer.key, peer: link.peer)
      perform(links.probe(engineLink, at: address, now: now), at: now, &out)
    }
    return now + interval
  }

  /// The path of a link leads elsewhere, or the link is new.
  mutating func pathChanged(
    of link: LinkID, to address: Address, at now: Instant, _ out: inout [Output]
  ) {
    let isDirect = address.relayed == nil
    _ = peers.update(link) { peer in
      if isDirect {
        peer.directAddress = address
        peer.directSince = peer.directSince ?? now
      } else {
        peer.seesThisNodeAt = nil
        if let since = peer.directSince {
          let isSteady = now - since >= Peer.steadyAfter
          peer.tryInterval =
            isSteady
            ? Peer.firstTryInterval : min(peer.tryInterval * 2, Peer.unsteadyTryInterval)
          peer.nextTryAt = now + peer.tryInterval
        }
        peer.directSince = nil
      }
    }
    if isDirect {
      send([.seen(address)], over: link, at: now, &out)
    } else {
      seenChanged()
    }
    if !isDirect || unreachable.index(of: link) != nil {
      repeatFrames(over: link, since: now + (.zero - Self.repeatedTime), at: now, &out)
    }
    _ = channels.update(link.channel) { $0.relaySearchAt = now }
  }

  /// Takes up what neighbours say of where this node is, as it stands now.
  mutating func seenChanged() {
    discovery.setSeenByNeighbours(peers.compactMap { $0.value.seesThisNodeAt })
  }

  /// A neighbour says where it sees this node: the outside address, behind a NAT.
  mutating func receiveSeen(_ address: Address, over link: LinkID, at now: Instant) {
    // On its own network a neighbour knows no more than this node does.
    guard !isRelayed(link), address.isUnicast, address.relayed == nil, address.reach != .link
    else { return }
    _ = peers.update(link) { $0.seesThisNodeAt = address }
    seenChanged()
  }

  /// A member who is reached through somebody says where it may be reached itself.
  mutating func receiveCandidates(
    _ addresses: [Address], over link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    guard isRelayed(link), peers.update(link, { $0.candidates.take(at: now) }) ?? false,
      let peer = peers[link]
    else { return }
    let engineLink = SessionLinkID(key: peer.key, peer: link.peer)
    perform(discovery.learned(engineLink, of: addresses, at: now), at: now, &out)
  }
}
