import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterLink
import MusterMedia
import MusterWire

/// One node as a value that combines discovery, links, channels and media.
///
/// A node performs no I/O. The shell and the simulator pass datagrams, encoded media, commands and
/// the time to the node, and execute the `Output` that every method returns. The node only routes
/// between its parts, which own their state and return outputs: `Discovery`, `LinkEngine` with its
/// paths, `Keyring`, `Associations`, `Relaying`, a `ChannelState` for each channel, the media and
/// `Congestion`.
/// There are four families of methods:
///
/// - getters, such as `members(of:)`, `statistics(at:)` and `wake`;
/// - inputs: `receive(_:from:at:)`, `tick(at:)`, `sendVideo`, `sendAudio`, and the host's
///   addresses, rendezvous servers, clock and sources;
/// - user commands, such as `join`, `say`, `grant` and `leaveCall`, which may be refused;
/// - `perform(_:)`, for the outputs of each part, and `tick` and `receive` for the node itself.
///
/// Queries that only mutating methods make are `mutating` themselves: Swift 6.3 takes seconds to
/// check what a method that borrows so large a noncopyable value does with its parts (0064).
public struct Node: ~Copyable, Sendable {
  /// The settings of a node that hold for all of its channels.
  public struct Configuration: Sendable, Equatable {
    /// The member's display name.
    public var name = "member"
    /// The request for every video stream of the members while this node has no viewer.
    public var requested = VideoRequest.best
    /// The request for every video stream beside what the viewer shows, for example to record it.
    public var requestedBesidesViewer = VideoRequest.none
    /// The most that this node requests of a stream that its viewer shows.
    public var shownLimit = VideoRequest.best
    /// The most video streams that this node receives at once, in all channels; those that rank
    /// lowest for it rest. Nil for no limit.
    public var maxStreams: Int?
    /// The media that are muted at first in every channel that the node joins.
    public var muted: OwnMedia = []
    /// The interval between the pings that measure the round trip to a participant of the same
    /// call.
    public var pingInterval = Duration.seconds(1)
    /// The interval between the pings to a member that is not in the same call.
    public var idlePingInterval = Duration.seconds(15)
    /// Whether this node enters every call that members start, except one that it has left.
    public var answersCalls = false
    /// Whether this node is a rendezvous server, which stores announcements for other nodes.
    public var offersRendezvous = false
    /// Whether this node relays between members that cannot reach each other directly.
    public var relays = true
    /// The interval at which RTCP sender reports, and likewise receiver reports, are sent on a
    /// link.
    public var reportInterval = Duration.seconds(1)
    /// The most that the camera's largest layer may take in kbit/s; nil selects the maximum of
    /// `LayerLadder`.
    public var videoBitrate: Int?
    /// The most that this node may send in all, in kbit/s of IP packets; nil to find out.
    public var uplink: Int?
    /// The rules of channels, which tests replace to simulate faulty or modified nodes.
    package var policy = ChannelPolicy.standard

    /// Creates the default configuration.
    public init() {}
  }

  /// An action for the host. `MusterNode` and the simulations switch over all cases.
  public enum Output: Equatable, Sendable {
    /// Send a datagram to an address, marked as of this class.
    case send([UInt8], to: Address, as: ServiceClass = .standard)
    /// Send a datagram to the multicast groups and broadcast addresses of every interface.
    case broadcast([UInt8])
    /// Report an event of a channel to users and scripts.
    case event(NodeEvent, in: ChannelID)
    /// Encode exactly these layers of a stream at these bitrates, smallest first; stop encoding if
    /// the array is empty.
    case encode(StreamID, [EncoderTarget])
    /// Make the next frame of a layer a keyframe.
    case encodeKeyframe(StreamID, layer: Int)
    /// Begin or stop to encode long packets of audio.
    case encodeLongPackets(Bool)
    /// Show this frame after its delay.
    case show(ReceivedFrame, from: LinkID, stream: StreamID)
    /// Play an Opus packet of the member at the other end of the link.
    case play(ReceivedAudio, from: LinkID)
    /// The member has withdrawn a stream. If `stream` is nil, the member or this node has left the
    /// call.
    case mediaEnded(LinkID, stream: StreamID?)
    /// Store this change for later processes of this node; peers may receive the change before it
    /// is stored.
    case write(Change, in: ChannelID)
    /// Write all of these changes or none, then call `finish`, which returns the datagrams for the
    /// peers. `finish` seals these datagrams, so that packet numbers, times and paths are current.
    /// `ChannelState` documents which changes wait for the disk, and why.
    case commit([Change], then: CommitID)
  }

  /// A change to be stored for later processes of this node.
  public enum Change: Equatable, Sendable {
    /// A signed entry of a channel's document, under its id.
    case entry([UInt8], id: EntryID)
    /// Delete entries that are no longer needed.
    case forget([EntryID])
    /// A stored message has been shown, so later processes need not show the message again.
    case delivered(EntryID)
    /// A key of the channel.
    case key(EpochKey)
    /// This node, restored from a backup (`ChannelSetup.isRestored`), knows what another member
    /// knows.
    case met
  }

  /// The key pair of this node, the same across restarts.
  public let identity: Identity
  /// 64 random bits that identify this run of the node.
  public let bootID: UInt64
  /// The current settings.
  public internal(set) var configuration: Configuration

  /// Whether this node has reported that its identity runs on another machine, too.
  var hasTwin = false
  var discovery: Discovery {
    didSet { isDiscoveryStale = true }
  }
  /// The deadline of `discovery`, cached until `discovery` changes.
  private var discoveryDeadline: Instant?
  private var isDiscoveryStale = true
  var links: LinkEngine
  /// The storage for outputs of the link engine, empty between inputs and kept to avoid allocation.
  var linkOutputs: [LinkEngine.Output] = []
  var channels = DeadlineTable<ChannelID, Channel>()
  var keyring = Keyring()
  var associations = Associations()
  var relaying = Relaying()
  /// The tokens of the host's pings that have not been answered, one for each link.
  var pendingPings = PeerTable<LinkID, UInt64>()
  /// The state of this node as a rendezvous server; nil if this node is not a rendezvous server.
  var server: RendezvousServer?
  var entropy: Entropy
  /// The means by which members beyond the LAN may be found.
  var finders = (rendezvousServers: 0, peers: false, dht: false)
  var media: MediaSessions
  var congestion = Congestion()
  var prng: PRNG
  /// The offset from boot time to Unix time, in milliseconds.
  var wallOffset: Int64 = 0

  /// Creates a node. Keys are drawn from `entropy`; jitter and sequence numbers, which need not be
  /// secret, are derived from `seed`.
  public init(
    identity: Identity, entropy: Entropy, seed: UInt64, configuration: Configuration = .init()
  ) {
    var entropy = entropy
    let bootID = entropy.u64()
    self.identity = identity
    self.bootID = bootID
    self.configuration = configuration
    prng = PRNG(seed: seed)
    discovery = Discovery(
      identity: identity, bootID: bootID, entropy: entropy.fork(), seed: prng.next())
    links = LinkEngine(
      identity: identity, bootID: bootID, entropy: entropy.fork(), seed: prng.next())
    media = MediaSessions(configuration, own: identity.id, prng: &prng)
    media.local.set(.declinesRelaying, to: !configuration.relays)
    if configuration.offersRendezvous { server = RendezvousServer(entropy: entropy.fork()) }
    self.entropy = entropy.fork()
  }

  /// The public key of this node.
  public var id: NodeID { identity.id }

  /// The associations in use.
  var peers: DeadlineTable<LinkID, Peer> {
    _read { yield associations.peers }
    _modify { yield &associations.peers }
  }

  /// The time at which the host must call `tick`, and the part that is due. The parts cache their
  /// deadlines, so hosts can read this property after every datagram.
  public var wake: Wake? {
    var next = Wake(discoveryDue, .discovery)
    next = soonest(next, Wake(links.deadline, .link))
    next = soonest(next, Wake(links.paths.deadline, .path))
    next = soonest(next, Wake(associations.deadline, .association))
    next = soonest(next, Wake(relaying.deadline, .relaying))
    next = soonest(next, Wake(server?.deadline, .rendezvous))
    next = soonest(next, Wake(media.deadline, .media))
    next = soonest(next, Wake(congestion.deadline, .congestion))
    next = soonest(next, Wake(channels.deadline, .channel))
    return soonest(next, Wake(associations.peers.deadline, .peer))
  }

  /// The time at which the host must call `tick`; nil if no work is scheduled.
  public var deadline: Instant? { wake?.at }

  /// Updates the cached deadlines of the parts that changed.
  mutating func refreshDeadlines() {
    channels.refresh()
    associations.peers.refresh()
    media.refreshDeadlines()
    congestion.refreshDeadlines()
    guard isDiscoveryStale else { return }
    discoveryDeadline = discovery.deadline
    isDiscoveryStale = false
  }

  private var discoveryDue: Instant? { isDiscoveryStale ? discovery.deadline : discoveryDeadline }

  /// Handles all due timers; has no effect before `deadline`. Only the parts that are due are
  /// called, because in a call one part or another is due every few milliseconds. A part that
  /// becomes due through another waits for the next tick if its turn is over.
  public mutating func tick(at now: Instant) -> [Output] {
    var out: [Output] = []
    func isDue(_ deadline: Instant?) -> Bool { deadline.map { $0 <= now } ?? false }
    noticeSleep(at: now, &out)
    if isDue(discoveryDue) { perform(discovery.tick(at: now), at: now, &out) }
    if isDue(links.deadline) { perform(links.tick(at: now), at: now, &out) }
    server?.tick(at: now)
    if isDue(media.deadline) { perform(media.tick(at: now), at: now, &out) }
    if isDue(congestion.deadline) { perform(congestion.tick(at: now), at: now, &out) }
    if isDue(relaying.queue.deadline) { relayQueued(at: now, &out) }
    if isDue(soonest(channels.deadline, relaying.deadline)) {
      for channel in channels.keys { tick(channel: channel, at: now, &out) }
    }
    if isDue(links.paths.deadline) { pingDuePaths(at: now, &out) }
    if isDue(associations.peers.deadline) {
      for link in peers.keys { tick(peer: link, at: now, &out) }
    }
    if isDue(associations.deadline) { perform(associations.tick(at: now), at: now, &out) }
    refreshDeadlines()
    return out
  }

  /// Restarts discovery if `deadline` was missed by more than `sleepNoticed`, which means that the
  /// process was stopped or the machine slept.
  private mutating func noticeSleep(at now: Instant, _ out: inout [Output]) {
    guard let deadline, now - deadline > Self.sleepNoticed else { return }
    perform(discovery.restart(at: now), at: now, &out)
  }

  private static let sleepNoticed = Duration.seconds(1)

  /// Handles a datagram that arrived on this node's port or on the discovery port.
  public mutating func receive(
    _ datagram: [UInt8], from source: Address, at now: Instant
  ) -> [Output] {
    var out: [Output] = []
    receive(datagram, from: source, at: now, into: &out)
    return out
  }

  /// Handles a datagram, for hosts that read several datagrams at once and collect the outputs in
  /// one array. `arrivedAt` is the time at which the machine received it, if it knows.
  public mutating func receive(
    _ datagram: [UInt8], from source: Address, arrivedAt: Instant? = nil, at now: Instant,
    into out: inout [Output]
  ) {
    if let arrivedAt { media.noteLoopWait(now - arrivedAt) }
    switch DatagramKind(of: datagram) {
    case .announcement, .challenge:
      perform(discovery.receive(datagram, from: source, at: now), at: now, &out)
    case .rendezvousCookie, .rendezvousRecords:
      perform(discovery.receive(datagram, from: source, at: now), at: now, &out)
      for channel in channels.keys { enterCallIfDue(channel, at: now, &out) }
    case .rendezvousHello, .rendezvousRegistration:
      out += answerRendezvousRequest(datagram, from: source, at: now)
    case .handshakeInitiation, .handshakeResponse, .cookieReply, .data:
      receiveLinkDatagram(
        datagram, over: .direct(source), arrivedAt: arrivedAt ?? now, at: now, &out)
    case nil: break
    }
    refreshDeadlines()
  }

  // MARK: Addresses for discovery

  /// Sets the addresses to announce, at most `Limits.addresses`, best first.
  public mutating func setOwnAddresses(_ addresses: [Address], at now: Instant) -> [Output] {
    var out: [Output] = []
    let bounded = Array(addresses.prefix(Limits.addresses))
    perform(discovery.setOwnAddresses(bounded, at: now), at: now, &out)
    return out
  }

  /// Handles a change of this machine's network routes: linked peers are pinged at once from the
  /// new source address, and the rendezvous servers are queried, which shows them the new address.
  public mutating func pathsChanged(at now: Instant) -> [Output] {
    var out: [Output] = []
    congestion.pathsChanged()
    for link in peers.keys { sendPing(over: link, at: now, &out) }
    perform(discovery.seek(at: now), at: now, &out)
    return out
  }

  /// Sets the current addresses of the rendezvous servers to use.
  public mutating func setRendezvous(_ servers: [Contact], at now: Instant) -> [Output] {
    var out: [Output] = []
    perform(discovery.setRendezvous(servers, at: now), at: now, &out)
    return out
  }

  /// Sets by which means members beyond the LAN may be found, before the node joins a channel: the
  /// number of rendezvous servers that it asks, and whether it has configured peers and uses a DHT.
  /// Before it starts a call, a node waits for their answers (`startCall`).
  public mutating func setFinders(rendezvousServers: Int, peers: Bool, dht: Bool) {
    finders = (min(rendezvousServers, Limits.rendezvous), peers, dht)
  }

  /// The addresses of the rendezvous servers that have answered a request of this node.
  public var answeringRendezvous: [Address] { discovery.answeringRendezvous }

  /// Handles a request to this node as a rendezvous server; no outputs if this node is not one.
  private mutating func answerRendezvousRequest(
    _ datagram: [UInt8], from source: Address, at now: Instant
  ) -> [Output] {
    let seconds = UInt64(clamping: wallOffset &+ now.nanoseconds / 1_000_000) / 1000
    let answers = server?.receive(datagram, from: source, seconds: seconds, at: now) ?? []
    return answers.map { answer in
      switch answer {
      case .send(let datagram, let address): .send(datagram, to: address)
      }
    }
  }

  /// Sets the current addresses of the configured peers, at most `Limits.configuredPeers`.
  public mutating func setPeers(_ contacts: [Contact], at now: Instant) -> [Output] {
    var out: [Output] = []
    perform(discovery.setPeers(contacts, at: now), at: now, &out)
    return out
  }
}
