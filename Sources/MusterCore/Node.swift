import MusterBase
import MusterCrypto
import MusterLink
import MusterMedia
import MusterMesh
import MusterWire

/// One node as a value: discovery, links, channels and media put together.
///
/// Does no I/O. The shell and the simulator hand it datagrams, encoded media, commands and the
/// time, and carry out the `Output` that every method returns. Its parts are in `Node+…`.
public struct Node: Sendable {
  public struct Configuration: Sendable, Equatable {
    /// The member's display name.
    public var name = "member"
    /// The largest picture asked of others.
    public var wish = VideoWish.best
    /// A link is given up when nothing came over it for so long: three missed pings.
    public var silenceLimit = Duration.milliseconds(3900)
    public var pingInterval = Duration.seconds(1)
    /// How long a start waits for members who may already have a call.
    public var startGrace = Duration.milliseconds(300)
    public var reportInterval = Duration.seconds(1)

    public init() {}
  }

  /// What the host must do. The shell and the simulator switch over the same cases.
  public enum Output: Equatable, Sendable {
    case send([UInt8], to: Address)
    /// To the multicast groups and broadcast addresses of every interface.
    case broadcast([UInt8])
    case event(NodeEvent, in: ChannelID)
    /// Exactly these layers are wanted from the encoder, smallest first; none: stop.
    case encode(layers: [Int])
    case encodeKeyframe(layer: Int)
    /// Show this picture, but not before `delay` has passed.
    case show(ReceivedFrame, from: LinkID, delay: Duration)
    case play(ReceivedAudio, from: LinkID)
    /// Nothing more will come from this member in this call.
    case mediaEnded(LinkID)
  }

  public let identity: Identity
  public let bootID: UInt64
  public internal(set) var configuration: Configuration

  var discovery: Discovery
  var links: LinkEngine
  var channels = PeerTable<ChannelID, Channel>()
  var peers = PeerTable<LinkID, Peer>()
  var publisher: Publisher
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
    publisher = Publisher(prng: &prng)
  }

  public var id: NodeID { identity.id }
  public var channelIDs: [ChannelID] { channels.keys }

  /// The next time `tick` has work, and so the host must call it.
  public var deadline: Instant? {
    var next = soonest(discovery.deadline, links.deadline)
    next = soonest(next, publisher.deadline)
    for index in 0..<channels.count { next = soonest(next, channels[at: index].deadline) }
    for index in 0..<peers.count { next = soonest(next, peers[at: index].deadline) }
    return next
  }

  /// Does what is due; harmless before `deadline`.
  public mutating func tick(at now: Instant) -> [Output] {
    var out: [Output] = []
    perform(discovery.tick(at: now), at: now, &out)
    perform(links.tick(at: now), at: now, &out)
    for layer in publisher.dueKeyframes(at: now) { out.append(.encodeKeyframe(layer: layer)) }
    for channel in channels.keys { tick(channel: channel, at: now, &out) }
    for link in peers.keys { tick(peer: link, at: now, &out) }
    return out
  }

  /// A datagram that arrived on this node's port or on the discovery port.
  public mutating func receive(
    _ datagram: [UInt8], from source: Address, at now: Instant
  ) -> [Output] {
    var out: [Output] = []
    switch DatagramKind(of: datagram) {
    case .announce, .challenge:
      perform(discovery.receive(datagram, from: source, at: now), at: now, &out)
    case .handshakeInitiation, .handshakeResponse, .cookieReply, .data:
      perform(links.receive(datagram, from: source, at: now), at: now, &out)
    case nil: break
    }
    return out
  }

  // MARK: Channels

  /// Enters a channel; true to join or start its call as soon as possible. Nothing when it is open.
  public mutating func join(
    _ key: ChannelKey, named name: String, call wantsCall: Bool, at now: Instant
  ) -> [Output] {
    guard channels[key.channelID] == nil, channels.count < Limits.channels else { return [] }
    var out: [Output] = []
    var state = ChannelState(
      identity: identity, channel: key.channelID, name: configuration.name, bootID: bootID)
    var stateOutputs = state.setFlags(publisher.flags, at: now)
    stateOutputs += state.setLayers(publisher.layers, at: now)
    channels[key.channelID] = Channel(key: key, name: name, state: state, openedAt: now)
    links.open(key)
    perform(stateOutputs, in: key.channelID, at: now, &out)
    perform(discovery.open(key, at: now), at: now, &out)
    if wantsCall { startCall(in: key.channelID, at: now, &out) }
    return out
  }

  /// Leaves the channel: members get a last hello, links are closed by `finishLeaving`.
  public mutating func leave(_ channel: ChannelID, at now: Instant) -> [Output] {
    var out: [Output] = []
    endMedia(in: channel, at: now, &out)
    let outputs = channels.update(channel) { $0.state.leave(at: now) } ?? []
    perform(outputs, in: channel, at: now, &out)
    publish(at: now, &out)
    return out
  }

  /// Forgets a channel after `leave`, closing its links.
  public mutating func finishLeaving(_ channel: ChannelID, at now: Instant) -> [Output] {
    var out: [Output] = []
    discovery.close(channel: channel)
    perform(links.close(channel: channel, at: now), at: now, &out)
    channels[channel] = nil
    return out
  }

  /// Whether every linked member has acknowledged this node's newest hello.
  public func isSettled(_ channel: ChannelID) -> Bool {
    channels[channel]?.state.isSettled ?? true
  }

  public func members(of channel: ChannelID) -> [Member] { channels[channel]?.state.members ?? [] }
  public func ownMember(in channel: ChannelID) -> Member? { channels[channel]?.state.ownMember }
  public func call(in channel: ChannelID) -> ActiveCall? { channels[channel]?.state.call }
  public func isInCall(_ channel: ChannelID) -> Bool { channels[channel]?.state.isInCall ?? false }
  public func name(of channel: ChannelID) -> String? { channels[channel]?.name }
  public var linkCounters: LinkCounters { links.counters }

  // MARK: Where to find others

  /// The addresses to announce, at most `Limits.addresses`, best first.
  public mutating func setOwnAddresses(_ addresses: [Address], at now: Instant) -> [Output] {
    var out: [Output] = []
    let bounded = Array(addresses.prefix(Limits.addresses))
    perform(discovery.setOwnAddresses(bounded, at: now), at: now, &out)
    return out
  }

  /// The addresses that configured peers have at the moment.
  public mutating func setPeers(_ addresses: [Address], at now: Instant) -> [Output] {
    var out: [Output] = []
    let bounded = Array(addresses.prefix(Limits.configuredPeers))
    perform(discovery.setPeers(bounded, at: now), at: now, &out)
    return out
  }
}

/// One channel that the node is in.
struct Channel: Sendable {
  let key: ChannelKey
  let name: String
  var state: ChannelState
  let openedAt: Instant
  /// Set while the node wants to be in the call and waits to hear of one.
  var startsCallAt: Instant?
  var callState = CallState.disconnected

  var deadline: Instant? { soonest(state.deadline, startsCallAt) }
}
