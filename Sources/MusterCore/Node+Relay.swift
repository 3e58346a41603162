import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterLink
import MusterWire

/// Passing on what neighbours send each other, and taking in what came through one.
///
/// Two hops are the limit: what came through somebody is not passed on.
extension Node {
  /// Sends a link's datagram to where the link leads, if need be through a neighbour.
  mutating func send(
    _ datagram: [UInt8], to address: Address, at now: Instant, _ out: inout [Output]
  ) {
    guard address.relayed != nil else {
      out.append(.send(datagram, to: address))
      return
    }
    guard let relayed = relayedPaths[address], datagram.count <= RelayEnvelope.datagramLimit else {
      return
    }
    let relay = LinkID(channel: relayed.channel, peer: relayed.relay)
    guard !isRelayed(relay) else { return }
    send(
      RelayEnvelope.header(.forward, relayed.target.key.prefix), datagram[...], over: relay,
      at: now,
      &out)
  }

  /// Passes on what is for another neighbour, takes in what came through one.
  mutating func receiveRelayed(
    _ payload: [UInt8], over link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    guard !isRelayed(link), let envelope = try? RelayEnvelope(decoding: payload) else { return }
    switch envelope.direction {
    case .forward:
      guard let target = neighbour(envelope.member, in: link.channel), target != link,
        !isRelayed(target), configuration.relays,
        relayBudget.take(
          payload.count, from: link.peer, to: target.peer, in: link.channel, at: now)
      else { return }
      send(
        RelayEnvelope.header(.forwarded, link.peer.key.prefix), envelope.datagram, over: target,
        at: now, &out)
    case .forwarded:
      guard let state = channels[link.channel]?.state,
        let member = state.members.first(where: { $0.id.key.prefix == envelope.member })
      else { return }
      let address = relayedPaths.address(
        of: RelayedPath(channel: link.channel, relay: link.peer, target: member.id))
      let datagram = Array(envelope.datagram)
      switch DatagramKind(of: datagram) {
      case .handshakeInitiation, .handshakeResponse, .cookieReply, .data:
        perform(links.receive(datagram, from: address, at: now), at: now, &out)
        if lapsed.count > 0 { revive(at: now, &out) }
      default: break
      }
    }
  }

  /// Tells others when this node has its hands full, and when it has not any more.
  mutating func signalRelayLoad(at now: Instant, _ out: inout [Output]) {
    let isLoadHigh = relayBudget.isLoadHigh(at: now)
    guard isLoadHigh != localMedia.flags.contains(.relaysMuch) else { return }
    out += change(at: now) { $0.set(.relaysMuch, to: isLoadHigh) }
  }

  /// Whose packets this node passes on.
  public func relayedPairs(at now: Instant) -> [RelayedPair] { relayBudget.carried(at: now) }

  private func neighbour(_ prefix: UInt64, in channel: ChannelID) -> LinkID? {
    peers.keys.first { $0.channel == channel && $0.peer.key.prefix == prefix }
  }

  /// Whether a link leads through a neighbour.
  func isRelayed(_ link: LinkID) -> Bool { relay(of: link) != nil }

  /// The neighbour through whom a link leads; nil for a direct one.
  func relay(of link: LinkID) -> NodeID? {
    guard let peer = peers[link] else { return nil }
    return links.address(of: SessionLinkID(key: peer.key, peer: link.peer))
      .flatMap { relayedPaths[$0]?.relay }
  }
}
