import Logging
import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterDiscovery
import MusterMedia
import MusterNetwork
import MusterPipeline
import MusterStore
import MusterSystem
import MusterWire

/// A running node: sockets, clocks, devices and codecs around one `Node` value.
///
/// The actor runs on its own event loop, which handles all datagrams, timers, media and commands.
/// While an asynchronous method is suspended, other methods may change the state of `node`.
public actor MusterNode {
  /// This node's identity.
  public nonisolated let id: NodeID
  /// The UDP addresses that the node is bound to.
  public nonisolated let listening: [Address]
  /// The channels joined at the start.
  public nonisolated let joinedAtStart: [JoinedChannelRecord]
  nonisolated let loop: PollLoop
  nonisolated let readyAt: Instant
  nonisolated let feed = EventFeed()
  /// The log of decisions, each with its reason.
  nonisolated let logger: Logger
  let dataDirectory: DataDirectory?
  /// The persistent state; nil for a node that stores nothing.
  let store: Store?
  var control: ControlSocket?
  /// Limits the warnings about a failing disk (one per write): 3 at once, then 1 per 10 s.
  var storeWarnings = TokenBucket(capacity: 3, perSecond: 0.1)
  /// Administration and joining take turns, since each reads the store, decides and writes.
  var storeTurns = Turns()
  /// The names and keys of members known in each channel.
  var trust: [ChannelID: TrustBook] = [:]

  let configuration: Configuration
  var node: Node
  let sockets: Sockets
  var interfaces: [NetworkInterface] = []
  let media: NodeMedia
  let timers: NodeTimers
  var networkChanges: NetworkChanges?
  var isLookingAgain = false
  /// Limits reactions to network changes, each of which pings every peer: 8 at once, then 2 per
  /// second.
  var looks = TokenBucket(capacity: 8, perSecond: 2)
  var finding: Finding
  var silence = Silence()
  var portKeeping = PortKeeping()
  var portMapper: PortMapper?
  var meters = Meters()
  /// The last reported record of this node in each channel.
  var ownRecords: [ChannelID: MemberRecord] = [:]
  /// The channel that the node has just left, by the name that its last events need.
  private var left: (channel: ChannelID, name: String)?
  /// The pings that are waiting for answers.
  var pongListeners: [PongListener] = []
  var receivedTraffic = ReceivedTraffic()
  var isStopping = false
  /// Reused storage for the outputs of `received`; empty between reads.
  private var receivedOutputs: [Node.Output] = []

  /// The event loop as the actor's executor.
  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    loop.asUnownedSerialExecutor()
  }

  private static let interfacePollSeconds: Int64 = 2
  static let resolveSeconds: Int64 = 10
  private static let wallClockSeconds: Int64 = 30

  private init(
    _ configuration: Configuration, node: consuming Node, sockets: Sockets, media: NodeMedia,
    finding: Finding, loop: PollLoop, opened: OpenedIdentity, joined: [JoinedChannelRecord]
  ) {
    self.configuration = configuration
    logger = configuration.logger
    id = node.id
    self.node = node
    self.sockets = sockets
    self.media = media
    self.finding = finding
    self.loop = loop
    timers = NodeTimers(on: loop)
    dataDirectory = opened.directory
    store = opened.store
    listening = sockets.bound
    joinedAtStart = joined
    readyAt = BootClock.now
  }

  /// Starts a node; throws if the configuration is invalid or a resource cannot be opened.
  public static func start(_ configuration: Configuration) async throws(MusterError) -> MusterNode {
    try FileLimit.check()
    let opened = try await openIdentity(configuration)
    var channels: [ChannelOpening.Result] = []
    for channel in configuration.channels {
      let joined = channels.map { (id: $0.setup.id, name: $0.setup.name) }
      let found = try await ChannelOpening.read(channel, from: opened.store)
      try found.check(beside: joined)
      if let unstored = found.unstored { try await opened.store?.write([.channel(unstored)]) }
      channels.append(found)
    }
    let listen = try configuration.listen.map { text throws(MusterError) in
      try Sockets.listenAddress(text)
    }
    let finding = try Finding(configuration)
    let known = Set(NetworkInterface.list().map(\.name))
    for name in configuration.interfaces where !known.contains(name) {
      throw MusterError(
        "there is no interface \(name)",
        hint: "the ones that are up: \(known.sorted().joined(separator: ", "))",
        kind: .usage)
    }
    let loop = try FileLimit.loop("muster-node")
    let reference = NodeReference(on: loop)
    let media = try await NodeMedia.open(configuration, for: reference)
    let sockets = try Sockets.open(listen: listen, lan: configuration.lan, on: loop) { datagrams in
      reference.onLoop { $0.received(datagrams) }
    }
    sockets.marksClasses = configuration.marksClasses
    var entropy = Entropy.system
    let node = Node(
      identity: opened.identity, entropy: entropy, seed: entropy.u64(),
      configuration: core(configuration))
    if let directory = opened.directory {
      let name = node.configuration.name
      await WorkerThread.value("muster-name") { directory.remember(displayName: name) }
    }
    let shell = MusterNode(
      configuration, node: node, sockets: sockets, media: media, finding: finding,
      loop: loop, opened: opened, joined: channels.map { JoinedChannelRecord($0.setup) })
    await reference.set(shell)
    await shell.begin(channels, warnings: opened.warnings)
    await shell.openControl()
    await shell.watchNetwork()
    return shell
  }

  private func begin(_ channels: [ChannelOpening.Result], warnings: [MusterError]) {
    timers.begin { [weak self] in self?.assumeIsolated { $0.timerFired() } }
    for warning in warnings { emit(.warning(warning)) }
    if configuration.lan, !sockets.hasDiscoveryPort {
      emit(
        .warning(
          MusterError(
            "cannot hear announcements on UDP port \(Sockets.Discovery.port)",
            hint: "others may still find this node; give addresses with --peer")))
    }
    updateInterfaces()
    setWallClock()
    offerSources()
    for channel in channels { enter(channel, call: configuration.call) }
    every(Self.interfacePollSeconds) { $0.updateInterfaces() }
    every(Self.wallClockSeconds) { $0.setWallClock() }
    every(1) {
      $0.emitStatistics()
      $0.explainSolitude()
    }
    resolve()
    every(Self.resolveSeconds) { $0.resolve() }
    every(Self.interfacePollSeconds) { $0.maintainPortMapping() }
    discoverServices()
    beginDHT()
  }

  func every(_ seconds: Int64, _ body: @escaping @Sendable (isolated MusterNode) -> Void) {
    timers.every(seconds) { [weak self] in self?.assumeIsolated { body($0) } }
  }

  private func setWallClock() {
    node.setWallClock(millisecondsSince1970: WallClock.milliseconds, at: now)
  }

  // MARK: Inputs

  var now: Instant { BootClock.now }

  func received(_ datagrams: [ReceivedDatagram]) {
    var outputs: [Node.Output] = []
    swap(&outputs, &receivedOutputs)
    let now = now
    for datagram in datagrams {
      receivedTraffic.count(datagram.trafficClass)
      node.receive(
        datagram.bytes, from: datagram.source, arrivedAt: datagram.arrivedAt, at: now,
        into: &outputs)
    }
    perform(outputs)
    outputs.removeAll(keepingCapacity: true)
    receivedOutputs = outputs
  }

  // MARK: Outputs

  /// Closes the links of a channel after its members have heard that this node leaves.
  func finishLeaving(_ channel: ChannelID) {
    guard let name = node.name(of: channel) else { return }
    left = (channel, name)
    perform(node.finishLeaving(channel, at: now))
    left = nil
  }

  /// The local name of a channel that the node is in, or has just left.
  func name(of channel: ChannelID) -> String? {
    node.name(of: channel) ?? left.flatMap { $0.channel == channel ? $0.name : nil }
  }

  /// Executes the outputs of the node, as the simulator does for simulated nodes.
  func perform(_ outputs: [Node.Output]) {
    var (writes, identities) = (NodeWrites(), [Store.Change]())
    var hasEvents = false
    for output in outputs {
      switch output {
      case .send(let datagram, let address, let serviceClass):
        sockets.enqueue(datagram, to: address, as: serviceClass)
      case .broadcast(let datagram):
        if configuration.lan { sockets.broadcast(datagram, via: interfaces) }
      case .event(let event, let channel):
        hasEvents = true
        nameRecording(event, in: channel)
        noteHeard(event, in: channel)
        noteIdentity(event, in: channel, &identities)
        // A message is reported once it is durable.
        if !writes.take(output), let event = hostEvent(event, in: channel) { emit(event) }
      case .encode(let stream, let targets):
        media.setTargets(targets, of: stream)
        updateEncoders()
      case .encodeKeyframe(let stream, let layer):
        media[stream]?.stream.requestKeyframe(layer: layer)
      case .encodeLongPackets(let areNeeded): media.audioEncoding.hasLongPackets = areNeeded
      case .show(let frame, let link, let stream): show(frame, of: MemberStream(link, stream))
      case .play(let audio, let link): media.playout?.play(audio, from: link, at: now)
      case .mediaEnded(let link, let stream): endMedia(of: link, stream)
      case .write, .commit: writes.take(output)
      }
    }
    sockets.flush()
    write(writes, besides: identities)
    timers.wake(at: node.deadline)
    guard hasEvents else { return }
    loop.coalescing = node.coalescing
    media.audioEncoding.isQuick = node.isEncodingQuickly
    reportOwnChanges()
  }

  private func timerFired() {
    timers.woke(for: node.wake, at: now)
    perform(node.tick(at: now))
  }

  func emit(_ event: Event) {
    log(event)
    feed.yield(TimedEvent(secondsSinceStart: secondsSinceStart, event: event))
  }

  /// A stream of the node's events, in order; there can be any number of streams.
  ///
  /// Consumers that subscribe before the first consumer reads also get the first 256 events since
  /// the start of the node; later consumers get only later events. Up to `capacity` events are
  /// queued per consumer. If the queue is full, the oldest events are dropped and replaced by a
  /// `warning` with their number. The stream ends with the node. Cancelling a task that waits for
  /// events ends only its stream.
  public nonisolated func events(capacity: Int = 4096) -> AsyncStream<TimedEvent> {
    feed.subscribe(capacity: capacity)
  }

  // MARK: Leaving

  /// Leaves every channel gracefully, closes files and devices, and ends the event streams.
  ///
  /// A node that is released without `stop` frees the same, but tells nobody: others miss it after
  /// their timeouts.
  public func stop() async {
    guard !isStopping else { return }
    isStopping = true
    timers.cancelRepeated()
    let channels = node.channelIDs
    for channel in channels { perform(node.leave(channel, at: now)) }
    // Run concurrently with the leave, because each of these calls may take up to a second.
    async let portClosed: Void = closePort()
    async let serviceWithdrawn: Void = stopDiscoveringServices()
    await sendLeave(to: channels)
    await serviceWithdrawn
    timers.cancel()
    await control?.close()
    networkChanges?.close()
    for thread in media.stop() { await thread.ended() }
    await finding.dht?.table.stop()
    await store?.close()
    sockets.close()
    await portClosed
    feed.finish()
  }
}

extension MusterNode {
  /// The time at which the node was ready, in seconds since the process started.
  public nonisolated var secondsToReady: Double {
    (readyAt - ProcessClock.startedAt).inSeconds
  }

  /// Seconds since the process started, the time base of events.
  public nonisolated var secondsSinceStart: Double {
    (BootClock.now - ProcessClock.startedAt).inSeconds
  }
}

/// The start time of this process, taken at the first access; a command therefore reads it before
/// anything else.
public enum ProcessClock {
  /// The boot-clock time of the first access.
  public static let startedAt = BootClock.now
}
