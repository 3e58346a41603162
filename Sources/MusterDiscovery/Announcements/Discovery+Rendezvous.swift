import MusterBase
import MusterCrypto
import MusterWire

/// Discovery beyond the local network, through rendezvous servers.
extension Discovery {
  /// Sets the resolved addresses of the rendezvous servers; new ones are contacted at once.
  public mutating func setRendezvous(_ servers: [Contact], at now: Instant) -> [Output] {
    rendezvous.set(servers, entropy: &entropy, at: now)
    return tick(at: now)
  }

  /// The addresses of the rendezvous servers that have answered.
  public var answeringRendezvous: [Address] { rendezvous.answering }

  /// This node's candidate addresses: its own addresses, and those that rendezvous servers and
  /// neighbours observe.
  public var reachableAddresses: [Address] { reachable(rendezvous.outside + seenByNeighbours) }

  /// The maximum number of announced server-reflexive addresses. Behind most NATs there is one such
  /// address; behind a NAT with address-dependent mapping (RFC 4787 section 4.1), each address is
  /// valid for one peer only.
  private static let outsideLimit = 3

  /// Sets this node's addresses as observed by neighbours. The most frequently reported addresses
  /// are used, because a single neighbour may report a false address.
  public mutating func setSeenByNeighbours(_ addresses: [Address]) {
    var votes: [(address: Address, count: Int)] = []
    for address in addresses where !ownAddresses.contains(address) {
      if let position = votes.firstIndex(where: { $0.address == address }) {
        votes[position].count += 1
      } else {
        votes.append((address, 1))
      }
    }
    votes.sort { $0.count == $1.count ? $0.address < $1.address : $0.count > $1.count }
    seenByNeighbours = votes.prefix(Self.outsideLimit).map(\.address)
  }

  /// Adds candidates that a member reports about itself, forwarded by a neighbour.
  public mutating func learned(
    _ peer: SessionLinkID, of addresses: [Address], at now: Instant
  ) -> [Output] {
    guard channels.contains(where: { $0.id == peer.key }), !linkedPeers.contains(peer) else {
      return []
    }
    candidateProber.learned(peer, addresses, at: now)
    return tick(at: now)
  }

  /// Asks the rendezvous servers for the address of a peer whose link has become silent, and
  /// registers this node's own address there.
  public mutating func seek(at now: Instant) -> [Output] {
    rendezvous.hurry(at: now)
    return tick(at: now)
  }

  mutating func receiveCookie(
    _ datagram: [UInt8], from source: Address, at now: Instant
  ) -> [Output] {
    guard let cookie = try? RendezvousCookie(decoding: datagram) else {
      counters.malformed += 1
      return []
    }
    rendezvous.isSeeking = !candidateProber.isEmpty
    let active = channels.filter { !$0.isPassive }.map { (key: $0.id, channel: $0.channel) }
    let step = rendezvous.receive(cookie, from: source, channels: active, at: now)
    return step.map { perform($0, at: now) } ?? []
  }

  /// Handles announcements stored by a rendezvous server. Their content is trusted only once the
  /// author has answered a challenge.
  mutating func receiveRecords(
    _ datagram: [UInt8], from source: Address, at now: Instant
  ) -> [Output] {
    guard let records = try? RendezvousRecords(decoding: datagram) else {
      counters.malformed += 1
      return []
    }
    guard let index = channels.firstIndex(where: { $0.slot == records.token }),
      rendezvous.acknowledge(channels[index].id, from: source, at: now)
    else {
      counters.foreignRecords += 1
      return []
    }
    for record in records.records { note(record, channel: index, at: now) }
    return tick(at: now)
  }

  private mutating func note(
    _ record: RendezvousRecords.Record, channel index: Int, at now: Instant
  ) {
    guard let announcement = secondHand(record.announcement, channel: index) else { return }
    counters.learned += 1
    let peer = SessionLinkID(key: channels[index].id, peer: announcement.author)
    candidateProber.learned(peer, [record.seen] + announcement.addresses, at: now)
  }

  /// Decodes an announcement that did not come from its author directly. Nil if no member of the
  /// channel signed it, if it is this node's own, or if its author is linked.
  mutating func secondHand(_ datagram: [UInt8], channel index: Int) -> Announcement? {
    guard let plaintext = DiscoveryDatagram.open(datagram, with: channels[index].key) else {
      counters.unreadable += 1
      return nil
    }
    guard let signed = try? SignedAnnouncement(decoding: plaintext) else {
      counters.malformed += 1
      return nil
    }
    guard signed.announcement.author != identity.id else {
      counters.ownAnnouncement += 1
      return nil
    }
    let peer = SessionLinkID(key: channels[index].id, peer: signed.announcement.author)
    guard !linkedPeers.contains(peer) else { return nil }
    guard signed.isGenuine(in: channels[index].id) else {
      counters.forged += 1
      return nil
    }
    return signed.announcement
  }

  mutating func perform(_ step: RendezvousClient.Step, at now: Instant) -> [Output] {
    switch step {
    case .hello(let token, let address):
      return [.send(RendezvousHello(token: token).encoded(), to: address)]
    case .register(let ids, let cookie, let wantsRecords, let address):
      return ids.flatMap { id in
        register(id, cookie, wantsRecords: wantsRecords, at: address, now)
      }
    }
  }

  /// Sends a registration for the server's current period, and one for the previous period while
  /// other members may still be registered under that period's tag.
  private mutating func register(
    _ id: KeyID, _ cookie: RendezvousCookie, wantsRecords: Bool, at address: Address,
    _ now: Instant
  ) -> [Output] {
    guard let index = channels.firstIndex(where: { $0.id == id }) else { return [] }
    let announcement = nextAnnouncement(in: index, reachableAddresses, at: now)
    let isYoung = Duration.seconds(Int64(cookie.age)) < RendezvousServer.lifetime
    let periods = isYoung ? [cookie.period, cookie.period &- 1] : [cookie.period]
    // The server may also be a member, and then learns of this node from the announcement itself.
    let direct: [Output] = linked.contains(address) ? [] : [.send(announcement, to: address)]
    return direct
      + periods.map { period in
        let registration = registration(
          channels[index], cookie, period: period, wantsRecords: wantsRecords,
          announcement: announcement)
        return .send(registration, to: address)
      }
  }

  /// Selects this node's own addresses and some of its server-reflexive addresses, within the limit
  /// of an announcement.
  func reachable(_ outside: [Address]) -> [Address] {
    var chosen: [Address] = []
    for address in outside where chosen.count < Self.outsideLimit {
      if !chosen.contains(address), !ownAddresses.contains(address) { chosen.append(address) }
    }
    return ownAddresses.prefix(Limits.addresses - chosen.count) + chosen
  }

  private func registration(
    _ channel: ChannelEntry, _ cookie: RendezvousCookie, period: UInt64, wantsRecords: Bool,
    announcement: [UInt8]
  ) -> [UInt8] {
    let tag = channel.key.rendezvousTag(period: period)
    return RendezvousTag.sign(
      RendezvousRegistration(
        token: channel.slot, cookie: cookie.cookie, period: period, tag: tag.id.key,
        slot: channel.slot, wantsRecords: wantsRecords, announcement: announcement),
      by: tag)
  }

  /// Withdraws this node's records of a channel from each rendezvous server for which a cookie is
  /// valid.
  mutating func deregister(_ channel: ChannelEntry, at now: Instant) -> [Output] {
    rendezvous.deregistrations(from: channel.channel, at: now).map { cookie, address in
      .send(
        registration(
          channel, cookie, period: cookie.period, wantsRecords: false, announcement: []),
        to: address)
    }
  }
}
