import MusterBase
import MusterCrypto
import MusterWire

/// Discovers the members of all open channels: announces this node, and verifies the announcements
/// of peers.
///
/// An announcement is encrypted with the channel key, signed and numbered, but can be recorded and
/// replayed from anywhere. An address is therefore accepted only after the peer has returned, from
/// that address, an echo that was sent to it (a return routability check); after that, a higher
/// counter suffices.
public struct Discovery: Sendable {
  /// An action for the host.
  public enum Output: Equatable, Sendable {
    /// Send a datagram to the multicast groups and the broadcast address of every interface.
    case broadcast([UInt8])
    /// Send a datagram to one address.
    case send([UInt8], to: Address)
    /// This run of the peer is live at this address.
    case found(NodeID, bootID: UInt64, key: KeyID, at: Address)
    /// The peer has announced itself elsewhere, and for 10 s answered at none of these addresses.
    case silent(NodeID, key: KeyID, at: [Address])
    /// Another run of this node's own identity is live at this address.
    case twin(key: KeyID, at: Address)
  }

  struct ChannelEntry: Sendable {
    let key: ChannelKey
    let id: KeyID
    let channel: ChannelID
    /// A random value that identifies this run's records at rendezvous servers. The servers return
    /// the value in their answers, which exposes forged answers.
    let slot: UInt64
    /// The secret for echoes, discarded when the channel is closed, so that echoes from before are
    /// rejected if the channel is opened again.
    let echoSecret: EchoSecret
    var schedule: BroadcastSchedule
    var proven = ProvenAuthors()
    var answers = AnswerLedger()
    var dhtRecords = DHTSchedule()
    var published = PublishedAnnouncements()
    /// Whether this node only listens under this key, for example under the key of a former epoch,
    /// and sends only answers to challenges.
    var isPassive = false
  }

  let identity: Identity
  let bootID: UInt64
  var entropy: Entropy
  var channels: [ChannelEntry] = []
  var challenges = ChallengeLedger()
  var rendezvous = RendezvousClient()
  var candidateProber = CandidateProber()
  /// This node's addresses as observed by the DHT's nodes.
  var seenAddresses: [Address] = []
  /// The rate limit for announcements from the DHT, where anyone who learns a DHT key can store
  /// invalid values.
  var postedBudget = PublishedAnnouncements.newBudget
  var jitter: PRNG
  private var lastCounter: UInt64 = 0
  var ownAddresses: [Address] = []
  /// This node's addresses as observed by neighbours, most frequent first.
  var seenByNeighbours: [Address] = []
  private var peers = ConfiguredPeers()
  private(set) var linked: [Address] = []
  private(set) var linkedPeers: [SessionLinkID] = []

  /// The traces of others that have not been found.
  public internal(set) var surroundings = Surroundings()
  /// Counts of actions and rejected datagrams since the start.
  public internal(set) var counters = DiscoveryCounters()

  /// Creates the state of a node without open channels; `bootID` must be random, and `seed` is for
  /// the jitter of the schedules.
  public init(identity: Identity, bootID: UInt64, entropy: Entropy, seed: UInt64) {
    self.identity = identity
    self.bootID = bootID
    self.entropy = entropy
    jitter = PRNG(seed: seed)
  }

  /// Starts announcing a channel at once, or only listening if passive; ignored beyond
  /// `Limits.channelKeys`. Without `channel`, the key is that of an open one.
  public mutating func open(
    _ key: ChannelKey, of channel: ChannelID? = nil, isPassive: Bool = false, at now: Instant
  ) -> [Output] {
    let id = key.keyID
    guard channels.count < Limits.channelKeys, !channels.contains(where: { $0.id == id }) else {
      return []
    }
    channels.append(
      ChannelEntry(
        key: key, id: id, channel: channel ?? key.channelID, slot: entropy.u64(),
        echoSecret: EchoSecret(entropy: &entropy),
        schedule: BroadcastSchedule(startingAt: now),
        isPassive: isPassive))
    if !isPassive {
      peers.restart(at: now)
      rendezvous.restart(at: now)
    }
    return tick(at: now)
  }

  /// Stops announcing under this key, but keeps answering challenges.
  public mutating func setPassive(_ key: KeyID) {
    for index in channels.indices where channels[index].id == key {
      channels[index].isPassive = true
    }
  }

  /// Announces all channels at once, for example after a network change.
  public mutating func restart(at now: Instant) -> [Output] {
    for index in channels.indices {
      channels[index].schedule.restart(at: now)
      channels[index].dhtRecords.restart()
    }
    peers.restart(at: now)
    rendezvous.restart(at: now)
    return tick(at: now)
  }

  /// Closes a channel: forgets its members and withdraws the records at rendezvous servers.
  public mutating func close(key: KeyID, at now: Instant) -> [Output] {
    let outputs = channels.filter { $0.id == key && !$0.isPassive }
      .flatMap { deregister($0, at: now) }
    channels.removeAll { $0.id == key }
    challenges.forget(key)
    candidateProber.end(key: key)
    return outputs
  }

  /// Sets this node's own addresses, best first; a change is announced at once.
  public mutating func setOwnAddresses(_ addresses: [Address], at now: Instant) -> [Output] {
    var usable: [Address] = []
    for address in addresses where address.isUnicast && usable.count < Limits.addresses {
      let address = address.withoutZone
      if !usable.contains(address) { usable.append(address) }
    }
    guard usable != ownAddresses else { return [] }
    ownAddresses = usable
    return restart(at: now)
  }

  /// Sets the resolved addresses of the configured peers; new ones get an announcement at once.
  public mutating func setPeers(_ contacts: [Contact], at now: Instant) -> [Output] {
    peers.set(contacts, linked: linked, at: now)
    return tick(at: now)
  }

  /// Sets the linked peers and their addresses: linked peers are not probed, and a linked
  /// configured peer gets announcements only every 30 s.
  public mutating func setLinked(_ links: [(peer: SessionLinkID, address: Address)]) {
    let links = links.prefix(Limits.links)
    linked = links.map(\.address)
    linkedPeers = links.map(\.peer)
    peers.setLinked(linked)
    for peer in linkedPeers { candidateProber.end(peer) }
  }

  /// Whether somebody in a channel may still be found soon: one whose announcement was challenged
  /// since this time, one with candidate addresses, or a configured peer without a link.
  public func isSeeking(in channel: ChannelID, challengedSince since: Instant) -> Bool {
    if peers.hasUnlinked(for: channel) { return true }
    return channels.contains { entry in
      guard entry.channel == channel else { return false }
      return candidateProber.isProbing(under: entry.id)
        || challenges.asked(under: entry.id, since: since)
          .contains { $0 != identity.id && !entry.proven.contains($0) }
    }
  }

  /// Handles a datagram; an unauthenticated one is not answered.
  public mutating func receive(
    _ datagram: [UInt8], from source: Address, at now: Instant
  ) -> [Output] {
    guard source.isUnicast else {
      counters.badSource += 1
      return []
    }
    switch DatagramKind(of: datagram) {
    case .announcement: return receiveAnnouncement(datagram, from: source, at: now)
    case .challenge: return receiveChallenge(datagram, from: source, at: now)
    case .rendezvousCookie: return receiveCookie(datagram, from: source, at: now)
    case .rendezvousRecords: return receiveRecords(datagram, from: source, at: now)
    default:
      counters.otherKind += 1
      return []
    }
  }

  /// Sends the announcements that are due; harmless before `deadline`.
  public mutating func tick(at now: Instant) -> [Output] {
    guard !channels.isEmpty else { return [] }
    let duePeers = peers.takeDue(at: now, jitter: &jitter)
    var outputs: [Output] = []
    for index in channels.indices where !channels[index].isPassive {
      let isDue = channels[index].schedule.takeDue(at: now, jitter: &jitter)
      let served = duePeers.filter { $0.serves(channels[index].channel) }
      guard isDue || !served.isEmpty else { continue }
      let datagram = nextAnnouncement(in: index, at: now)
      if isDue { outputs.append(.broadcast(datagram)) }
      outputs += served.map { .send(datagram, to: $0.address) }
    }
    for (key, addresses) in candidateProber.takeDue(at: now, jitter: &jitter) {
      guard let index = channels.firstIndex(where: { $0.id == key }) else { continue }
      let datagram = nextAnnouncement(in: index, at: now)
      outputs += addresses.map { .send(datagram, to: $0) }
    }
    outputs += candidateProber.takeSilent(at: now)
      .map { .silent($0.peer.peer, key: $0.peer.key, at: $0.addresses) }
    rendezvous.isSeeking = !candidateProber.isEmpty
    for step in rendezvous.takeDue(at: now, jitter: &jitter) {
      outputs += perform(step, at: now)
    }
    return outputs
  }

  /// The time at which `tick` next has work; nil without open channels.
  public var deadline: Instant? {
    guard !channels.isEmpty else { return nil }
    return soonest(
      soonest(channels.filter { !$0.isPassive }.map(\.schedule.nextAt).min(), peers.deadline),
      soonest(candidateProber.deadline, rendezvous.deadline))
  }

  /// Creates an announcement with a new counter, for any number of receivers.
  mutating func nextAnnouncement(
    in index: Int, _ addresses: [Address]? = nil, at now: Instant
  ) -> [UInt8] {
    counters.announced += 1
    let datagram = sealAnnouncement(in: index, echo: nil, addresses: addresses ?? ownAddresses)
    channels[index].answers.announced(lastCounter, at: now)
    return datagram
  }

  mutating func sealAnnouncement(in index: Int, echo: [UInt8]?, addresses: [Address]) -> [UInt8] {
    lastCounter += 1
    let announcement = Announcement(
      author: identity.id, bootID: bootID, counter: lastCounter, echo: echo, addresses: addresses)
    return SignedAnnouncement(announcement, by: identity, in: channels[index].id)
      .datagram(sealedBy: channels[index].key, entropy: &entropy)
  }
}
