import MusterBase
import MusterCrypto
import MusterLink
import MusterMesh
import MusterWire

/// Links through a neighbour, for members of a call who cannot reach each other.
///
/// Of two, the one with the smaller id chooses the neighbour, so that both do not pull in different
/// directions; the other's path follows as it does when a peer moves. Two hops are the limit: what
/// came through somebody is not passed on.
extension Node {
  /// How often it is looked at who is missing.
  static let relayInterval = Duration.milliseconds(250)
  /// How long a direct way is given to come about.
  private static let directPatience = Duration.milliseconds(750)
  /// Links of a call carry something more often than this.
  private static let silence = Duration.milliseconds(1250)
  private static let nextRelayAfter = Duration.seconds(1)

  // MARK: Sending and receiving

  /// Sends a link's datagram to where the link leads, if need be through a neighbour.
  mutating func send(
    _ datagram: [UInt8], to address: Address, at now: Instant, _ out: inout [Output]
  ) {
    guard address.detour != nil else {
      out.append(.send(datagram, to: address))
      return
    }
    guard let detour = detours[address], datagram.count <= RelayEnvelope.datagramLimit else {
      return
    }
    let relay = LinkID(channel: detour.channel, peer: detour.relay)
    guard !isDetoured(relay) else { return }
    send(
      RelayEnvelope.header(.forward, detour.target.key.prefix), datagram[...], over: relay, at: now,
      &out)
  }

  /// Passes on what is for another neighbour, takes in what came through one.
  mutating func receiveRelayed(
    _ payload: [UInt8], over link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    guard !isDetoured(link), let envelope = try? RelayEnvelope(decoding: payload) else { return }
    switch envelope.direction {
    case .forward:
      guard let target = neighbour(envelope.member, in: link.channel), target != link,
        !isDetoured(target),
        relayBudget.take(payload.count, from: link.peer, to: target.peer, at: now)
      else { return }
      send(
        RelayEnvelope.header(.forwarded, link.peer.key.prefix), envelope.datagram, over: target,
        at: now, &out)
    case .forwarded:
      guard let state = channels[link.channel]?.state,
        let member = state.members.first(where: { $0.id.key.prefix == envelope.member })
      else { return }
      let address = detours.address(
        of: Detour(channel: link.channel, relay: link.peer, target: member.id))
      let datagram = Array(envelope.datagram)
      switch DatagramKind(of: datagram) {
      case .handshakeInitiation, .handshakeResponse, .cookieReply, .data:
        perform(links.receive(datagram, from: address, at: now), at: now, &out)
        if lapsed.count > 0 { revive(at: now, &out) }
      default: break
      }
    }
  }

  private func neighbour(_ prefix: UInt64, in channel: ChannelID) -> LinkID? {
    peers.keys.first { $0.channel == channel && $0.peer.key.prefix == prefix }
  }

  /// Whether a link leads through a neighbour.
  func isDetoured(_ link: LinkID) -> Bool { relay(of: link) != nil }

  /// The neighbour through whom a link leads; nil for a direct one.
  func relay(of link: LinkID) -> NodeID? {
    guard let peer = peers[link] else { return nil }
    return links.address(of: LinkID(channel: peer.key, peer: link.peer))
      .flatMap { detours[$0]?.relay }
  }

  // MARK: Choosing

  /// Looks for ways to members of the call to whom nothing gets through.
  mutating func seekDetours(in channel: ChannelID, at now: Instant, _ out: inout [Output]) {
    guard let entry = channels[channel], let call = entry.state.ownMember.call else {
      for link in missing.keys where link.channel == channel { missing[link] = nil }
      return
    }
    for link in missing.keys where link.channel == channel {
      if entry.state.member(link.peer) == nil { missing[link] = nil }
    }
    for member in entry.state.members where id < member.id {
      let link = LinkID(channel: channel, peer: member.id)
      guard member.call == call, isMissing(link, at: now) else {
        missing[link] = nil
        continue
      }
      seekDetour(to: member, at: now, &out, link)
    }
  }

  private func isMissing(_ link: LinkID, at now: Instant) -> Bool {
    guard let peer = peers[link] else { return !isDenied(link, at: now) }
    let heard = links.lastHeard(LinkID(channel: peer.key, peer: link.peer)) ?? peer.upSince
    return now - heard >= Self.silence
  }

  private mutating func seekDetour(
    to member: Member, at now: Instant, _ out: inout [Output], _ link: LinkID
  ) {
    let peer = peers[link]
    var one =
      missing[link] ?? Missing(nextAt: peer == nil ? now + Self.directPatience : now)
    defer { missing[link] = one }
    guard one.nextAt <= now, let key = channels[link.channel]?.key.key.channelID else { return }
    let relays = relays(to: member.id, in: link.channel, at: now)
    if relays.allSatisfy(one.tried.contains) { one.tried = [] }
    guard let relay = relays.first(where: { !one.tried.contains($0) }) else { return }
    one.tried.append(relay)
    one.nextAt = now + Self.nextRelayAfter
    let address = detours.address(
      of: Detour(channel: link.channel, relay: relay, target: member.id))
    let outputs =
      if let peer {
        links.probe(LinkID(channel: peer.key, peer: link.peer), at: address, now: now)
      } else {
        links.connect(to: member.id, bootID: member.bootID, in: key, at: address, now: now)
      }
    perform(outputs, at: now, &out)
  }

  /// Neighbours of both who are heard themselves, the nearest first.
  private func relays(to member: NodeID, in channel: ChannelID, at now: Instant) -> [NodeID] {
    let hearers = channels[channel]?.state.neighbours(hearing: member) ?? []
    let usable = hearers.filter {
      let link = LinkID(channel: channel, peer: $0)
      return peers[link] != nil && !isDetoured(link) && !isMissing(link, at: now)
    }
    return usable.sorted { a, b in
      let (first, second) = (roundTrip(a, channel), roundTrip(b, channel))
      return first == second ? a < b : first < second
    }
  }

  private func roundTrip(_ member: NodeID, _ channel: ChannelID) -> Duration {
    peers[LinkID(channel: channel, peer: member)]?.roundTrip ?? .seconds(1)
  }
}
