import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterLink
import MusterMedia
import MusterWire

/// One node as a value: discovery, links, channels and media put together.
///
/// Does no I/O. The shell and the simulator hand it datagrams, encoded media, commands and the
/// time, and carry out the `Output` that every method returns. The node only routes between its
/// parts, which own their state and return outputs: `Discovery`, `LinkEngine` with its paths,
/// `Keyring`, `Associations`, `Relaying`, a `ChannelState` for each channel, and the media. Its
/// methods are of four families:
///
/// - getters, such as `members(of:)`, `statistics()` and `wake`;
/// - inputs: `receive(_:from:at:)`, `tick(at:)`, `sendVideo`, `sendAudio`, and the host's
///   addresses, rendezvous, clock and sources;
/// - commands of people, such as `join`, `say`, `grant` and `leaveCall`, which may be refused;
/// - `perform(_:)`, for the outputs of each part, and `tick` and `receive` for those of no part.
public struct Node: ~Copyable, Sendable {
  /// The settings of a node that hold for all of its channels.
  public struct Configuration: Sendable, Equatable {
    /// The member's display name.
    public var name = "member"
    /// The largest resolution requested of others, for each of their streams.
    public var requested = RequestedResolution.best
    /// The initial mute state in every channel that the node joins: `audioMuted`, `videoMuted`.
    public var muted: MemberFlags = []
    /// Between the pings that measure the round trip to a participant of the same call.
    public var pingInterval = Duration.seconds(1)
    /// Between the pings to a member that is not in the same call.
    public var idlePingInterval = Duration.seconds(15)
    /// Whether this node keeps announcements for others who look for each other.
    public var offersRendezvous = false
    /// Whether this node passes on what members send who cannot reach each other.
    public var relays = true
    /// How long a start waits for members who may already have a call.
    public var startGrace = Duration.milliseconds(300)
    /// Between the RTCP sender and receiver reports of a link.
    public var reportInterval = Duration.seconds(1)
    /// How the rules of channels are applied: tests plant bugs, or patched nodes, here.
    package var policy = ChannelPolicy.standard

    /// The defaults.
    public init() {}
  }

  /// What the host must do. The shell and the simulator switch over the same cases.
  public enum Output: Equatable, Sendable {
    /// Send a datagram to an address.
    case send([UInt8], to: Address)
    /// To the multicast groups and broadcast addresses of every interface.
    case broadcast([UInt8])
    /// Report an event of a channel to the host.
    case event(NodeEvent, in: ChannelID)
    /// Encode exactly these layers of a stream, smallest first; none: stop.
    case encode(StreamID, layers: [Int])
    /// Make the next frame of a layer a keyframe.
    case encodeKeyframe(StreamID, layer: Int)
    /// Show this frame, but not before `delay` has passed.
    case show(ReceivedFrame, from: LinkID, stream: StreamID, delay: Duration)
    /// Play an Opus packet of the member at the other end of the link.
    case play(ReceivedAudio, from: LinkID)
    /// The member has withdrawn a stream; nil: it has left the call, or this node has.
    case mediaEnded(LinkID, stream: StreamID?)
    /// Write this for later processes; others may hear of it before it is written.
    case write(Change, in: ChannelID)
    /// Write all of this or none of it, then call `finish`, which has the datagrams that follow:
    /// until then nobody hears of it. They are sealed only then, so that packet numbers, times and
    /// paths are those of the sending. `ChannelState` says what waits for the disk, and why.
    case commit([Change], then: CommitID)
  }

  /// Something to write for the later processes of this node.
  public enum Change: Equatable, Sendable {
    /// A signed entry of a channel's document, under its id.
    case entry([UInt8], id: EntryID)
    /// Entries that are not needed any more.
    case forget([EntryID])
    /// A written message has been shown: later processes need not show it again.
    case shown(EntryID)
    /// A key of the channel.
    case key(EpochKey)
  }

  /// The key pair of this node, the same across restarts.
  public let identity: Identity
  /// 64 random bits that identify this process among the restarts of the node.
  public let bootID: UInt64
  /// The settings in force.
  public internal(set) var configuration: Configuration

  var discovery: Discovery {
    didSet { isDiscoveryStale = true }
  }
  /// The deadline of `discovery`, cached until it changes.
  private var discoveryDeadline: Instant?
  private var isDiscoveryStale = true
  var links: LinkEngine
  /// Empty between two inputs; kept for its storage.
  var linkOutputs: [LinkEngine.Output] = []
  var channels = DeadlineTable<ChannelID, Channel>()
  var keyring = Keyring()
  var associations = Associations()
  var relaying = Relaying()
  /// Tokens of the pings that the host asked for and that are not answered, one for each link.
  var pendingPings = PeerTable<LinkID, UInt64>()
  /// While this node keeps announcements for others.
  var server: RendezvousServer?
  var entropy: Entropy
  var media: MediaSessions
  var prng: PRNG
  /// Milliseconds from boot time to wall time.
  var wallOffset: Int64 = 0

  /// `entropy` is for keys; `seed` for jitter and sequence numbers, where only spread matters.
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
    media = MediaSessions(configuration, prng: &prng)
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

  /// When the host must call `tick`, and what for. Each part knows its own time, so that asking is
  /// cheap after every datagram.
  public var wake: Wake? {
    var next = Wake(isDiscoveryStale ? discovery.deadline : discoveryDeadline, .discovery)
    next = soonest(next, Wake(links.deadline, .link))
    next = soonest(next, Wake(links.paths.deadline, .path))
    next = soonest(next, Wake(associations.deadline, .association))
    next = soonest(next, Wake(relaying.deadline, .relaying))
    next = soonest(next, Wake(server?.deadline, .rendezvous))
    next = soonest(next, Wake(media.deadline, .media))
    next = soonest(next, Wake(channels.deadline, .channel))
    return soonest(next, Wake(associations.peers.deadline, .peer))
  }

  /// When the host must call `tick`.
  public var deadline: Instant? { wake?.at }

  /// Has the parts that changed say when they next have work.
  private mutating func refreshDeadlines() {
    channels.refresh()
    associations.peers.refresh()
    media.refreshDeadlines()
    guard isDiscoveryStale else { return }
    discoveryDeadline = discovery.deadline
    isDiscoveryStale = false
  }

  /// Does what is due; harmless before `deadline`.
  public mutating func tick(at now: Instant) -> [Output] {
    var out: [Output] = []
    noticeSleep(at: now, &out)
    perform(discovery.tick(at: now), at: now, &out)
    perform(links.tick(at: now), at: now, &out)
    server?.tick(at: now)
    perform(media.tick(at: now), at: now, &out)
    for channel in channels.keys { tick(channel: channel, at: now, &out) }
    pingDuePaths(at: now, &out)
    for link in peers.keys { tick(peer: link, at: now, &out) }
    perform(associations.tick(at: now), at: now, &out)
    refreshDeadlines()
    return out
  }

  /// A process that was stopped, or a machine that slept, looks for the others at once.
  private mutating func noticeSleep(at now: Instant, _ out: inout [Output]) {
    guard let deadline, now - deadline > Self.sleepNoticed else { return }
    perform(discovery.restart(at: now), at: now, &out)
  }

  private static let sleepNoticed = Duration.seconds(1)

  /// A datagram that arrived on this node's port or on the discovery port.
  public mutating func receive(
    _ datagram: [UInt8], from source: Address, at now: Instant
  ) -> [Output] {
    var out: [Output] = []
    receive(datagram, from: source, at: now, into: &out)
    return out
  }

  /// The same for hosts that read several datagrams at once and carry out the outputs of all of
  /// them together.
  public mutating func receive(
    _ datagram: [UInt8], from source: Address, at now: Instant, into out: inout [Output]
  ) {
    switch DatagramKind(of: datagram) {
    case .announcement, .challenge:
      perform(discovery.receive(datagram, from: source, at: now), at: now, &out)
    case .rendezvousCookie, .rendezvousRecords:
      perform(discovery.receive(datagram, from: source, at: now), at: now, &out)
    case .rendezvousHello, .rendezvousRegistration:
      out += serve(datagram, from: source, at: now)
    case .handshakeInitiation, .handshakeResponse, .cookieReply, .data:
      receiveLinkDatagram(datagram, over: .direct(source), at: now, &out)
    case nil: break
    }
    refreshDeadlines()
  }

  // MARK: Where to find others

  /// The addresses to announce, at most `Limits.addresses`, best first.
  public mutating func setOwnAddresses(_ addresses: [Address], at now: Instant) -> [Output] {
    var out: [Output] = []
    let bounded = Array(addresses.prefix(Limits.addresses))
    perform(discovery.setOwnAddresses(bounded, at: now), at: now, &out)
    return out
  }

  /// This machine's routes have changed: linked peers are pinged at once from the new source
  /// address, and discovery announces this node again.
  public mutating func pathsChanged(at now: Instant) -> [Output] {
    var out: [Output] = []
    for link in peers.keys { sendPing(over: link, at: now, &out) }
    perform(discovery.seek(at: now), at: now, &out)
    return out
  }

  /// The addresses that rendezvous have at the moment.
  public mutating func setRendezvous(_ addresses: [Address], at now: Instant) -> [Output] {
    var out: [Output] = []
    perform(discovery.setRendezvous(addresses, at: now), at: now, &out)
    return out
  }

  /// The rendezvous that have answered.
  public var answeringRendezvous: [Address] { discovery.answeringRendezvous }

  /// A question to this node as a rendezvous.
  private mutating func serve(
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

  /// The addresses that configured peers have at the moment.
  public mutating func setPeers(_ addresses: [Address], at now: Instant) -> [Output] {
    var out: [Output] = []
    let bounded = Array(addresses.prefix(Limits.configuredPeers))
    perform(discovery.setPeers(bounded, at: now), at: now, &out)
    return out
  }
}
