import MusterBase
import MusterCrypto
import MusterWire

/// Finds the peers of every open channel: announces this node and proves who announces itself.
///
/// An announce is sealed by the channel key, signed and counted, but anyone can record one and send
/// it again from anywhere. So an address counts as a peer's only after the peer has sent back, from
/// there, an echo that it was given there; from then on a new counter is proof enough.
public struct Discovery: Sendable {
  public enum Output: Equatable, Sendable {
    /// To the multicast groups and the broadcast address of every interface.
    case broadcast([UInt8])
    case send([UInt8], to: Address)
    /// The peer is live at this address with this boot.
    case found(NodeID, bootID: UInt64, key: KeyID, at: Address)
  }

  struct Channel: Sendable {
    let key: ChannelKey
    let id: KeyID
    /// Tells this run's records at rendezvous from others', and answers about them from forgeries.
    let slot: UInt64
    /// Gone with what is known of authors when the channel is closed: an answer from before then
    /// proves nothing any more, sent again by whomever.
    let echoSecret: EchoSecret
    var schedule: BroadcastSchedule
    var proven = ProvenAuthors()
    var answers = AnswerLedger()
    var dhtRecords = DHTSchedule()
    var published = PublishedAnnouncements()
    /// Whether this node only hears others under this key, as under a former one, and is silent
    /// unless asked.
    var isPassive = false
  }

  let identity: Identity
  let bootID: UInt64
  var entropy: Entropy
  var channels: [Channel] = []
  var challenges = ChallengeLedger()
  var rendezvous = RendezvousClient()
  var candidateProber = CandidateProber()
  /// Where a DHT sees this node.
  var seenAddresses: [Address] = []
  /// For announces that were found in a DHT: anyone who learns a tag can leave junk there.
  var postedBudget = PublishedAnnouncements.newBudget
  var jitter: PRNG
  private var lastCounter: UInt64 = 0
  var ownAddresses: [Address] = []
  /// Where neighbours see this node, most of them first.
  var seenByNeighbours: [Address] = []
  private var peers = ConfiguredPeers()
  private(set) var linked: [Address] = []
  private(set) var linkedPeers: [SessionLinkID] = []

  public internal(set) var counters = DiscoveryCounters()

  public init(identity: Identity, bootID: UInt64, entropy: Entropy, seed: UInt64) {
    self.identity = identity
    self.bootID = bootID
    self.entropy = entropy
    jitter = PRNG(seed: seed)
  }

  /// Announces a channel at once and from now on, or only hears who does; beyond
  /// `Limits.channelKeys` nothing happens.
  public mutating func open(
    _ key: ChannelKey, isPassive: Bool = false, at now: Instant
  ) -> [Output] {
    let id = key.keyID
    guard channels.count < Limits.channelKeys, !channels.contains(where: { $0.id == id }) else {
      return []
    }
    channels.append(
      Channel(
        key: key, id: id, slot: entropy.u64(), echoSecret: EchoSecret(entropy: &entropy),
        schedule: BroadcastSchedule(startingAt: now),
        isPassive: isPassive))
    if !isPassive {
      peers.restart(at: now)
      rendezvous.restart(at: now)
    }
    return tick(at: now)
  }

  /// Announces nothing under this key any more, but still answers who does.
  public mutating func setPassive(_ key: KeyID) {
    for index in channels.indices where channels[index].id == key {
      channels[index].isPassive = true
    }
  }

  /// Announces every channel at once, as after a time in which nothing was heard.
  public mutating func restart(at now: Instant) -> [Output] {
    for index in channels.indices {
      channels[index].schedule.restart(at: now)
      channels[index].dhtRecords.restart()
    }
    peers.restart(at: now)
    rendezvous.restart(at: now)
    return tick(at: now)
  }

  /// Forgets a channel and everyone in it, and has rendezvous forget this node in it.
  public mutating func close(key: KeyID, at now: Instant) -> [Output] {
    let outputs = channels.filter { $0.id == key && !$0.isPassive }
      .flatMap { deregister($0, at: now) }
    channels.removeAll { $0.id == key }
    challenges.forget(key)
    candidateProber.end(key: key)
    return outputs
  }

  /// Says where this node may be reached, best first; a change is announced at once.
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

  /// Sets the configured peers, as resolved last; those that are new are announced to at once.
  public mutating func setPeers(_ addresses: [Address], at now: Instant) -> [Output] {
    peers.set(addresses, linked: linked, at: now)
    return tick(at: now)
  }

  /// Says who is linked, and where: configured peers among them are rarely announced to, and nobody
  /// among them is knocked at.
  public mutating func setLinked(_ links: [(peer: SessionLinkID, address: Address)]) {
    let links = links.prefix(Limits.links)
    linked = links.map(\.address)
    linkedPeers = links.map(\.peer)
    peers.setLinked(linked)
    for peer in linkedPeers { candidateProber.end(peer) }
  }

  /// Takes in one datagram; what proves nothing gets no answer.
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

  /// Announces what is due; harmless before `deadline`.
  public mutating func tick(at now: Instant) -> [Output] {
    guard !channels.isEmpty else { return [] }
    let duePeers = peers.takeDue(at: now, jitter: &jitter)
    var outputs: [Output] = []
    for index in channels.indices where !channels[index].isPassive {
      let isDue = channels[index].schedule.takeDue(at: now, jitter: &jitter)
      guard isDue || !duePeers.isEmpty else { continue }
      let datagram = nextAnnouncement(in: index, at: now)
      if isDue { outputs.append(.broadcast(datagram)) }
      outputs += duePeers.map { .send(datagram, to: $0) }
    }
    for (key, addresses) in candidateProber.takeDue(at: now, jitter: &jitter) {
      guard let index = channels.firstIndex(where: { $0.id == key }) else { continue }
      let datagram = nextAnnouncement(in: index, at: now)
      outputs += addresses.map { .send(datagram, to: $0) }
    }
    rendezvous.isSeeking = !candidateProber.isEmpty
    for step in rendezvous.takeDue(at: now, jitter: &jitter) {
      outputs += perform(step, at: now)
    }
    return outputs
  }

  public var deadline: Instant? {
    guard !channels.isEmpty else { return nil }
    return soonest(
      soonest(channels.filter { !$0.isPassive }.map(\.schedule.nextAt).min(), peers.deadline),
      soonest(candidateProber.deadline, rendezvous.deadline))
  }

  /// One announce with a counter of its own, for any number of receivers.
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
