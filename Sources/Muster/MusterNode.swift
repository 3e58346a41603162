import Logging
import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterDevices
import MusterDiscovery
import MusterNetwork
import MusterPipeline
import MusterStore
import MusterWire
import NIOCore
import NIOPosix

/// A running node: sockets, clocks, devices and codecs around one `Node` value.
///
/// An actor on one NIO event loop. Datagrams, timers, media and commands all come in on that loop.
/// Methods that await read the node first, and nothing of it after the suspension.
public actor MusterNode {
  /// This node's identity.
  public nonisolated let id: NodeID
  /// The UDP addresses it is bound to.
  public nonisolated let listening: [Address]
  /// The channels joined at the start.
  public nonisolated let channelNames: [String]
  nonisolated let loop: any EventLoop
  nonisolated let readyAt: Instant
  nonisolated let feed = EventFeed()
  /// Records decisions, each with its reason.
  nonisolated let logger: Logger
  let dataDirectory: DataDirectory?
  /// What outlives the process; nil for a node that is to leave no trace.
  let store: Store?
  let writer: StoreWriter?
  var control: ControlSocket?
  /// A disk that fails does so at every write: three warnings at once, then one in ten seconds.
  var storeWarnings = TokenBucket(capacity: 3, perSecond: 0.1)
  /// The names and keys known in each channel.
  var trust: [ChannelID: TrustBook] = [:]

  let configuration: Configuration
  var node: Node
  let sockets: Sockets
  var interfaces: [NetworkInterface] = []
  nonisolated let media: MediaThreads
  /// Where frames for the page go; nil while no page is open.
  var frameSink: (@Sendable (ViewedFrame) -> Void)?
  var showsPreview = false
  /// The layers that members need of each of this node's streams, by the stream's index.
  var wantedLayers = [[Int]](repeating: [], count: Limits.videoStreams)

  private var timer: Scheduled<Void>?
  private var timerDue: Instant?
  var wakes = WakeCounters()
  var networkChanges: NetworkChanges?
  var isLookingAgain = false
  /// Each change costs a ping to every peer: 8 at once, then 2 a second.
  var looks = TokenBucket(capacity: 8, perSecond: 2)
  var peerNames = PeerResolver(endpoints: [])
  var peerAddresses = PeerAddresses()
  var rendezvousNames = PeerResolver(endpoints: [])
  /// Nil where no DHT is configured.
  var dht: DHTState?
  nonisolated let dhtInbox = DHTInbox()
  /// What the store has of the rendezvous.
  var rememberedRendezvous: [String] = []
  /// Since when rendezvous have been asked and none has answered.
  var rendezvousAskedAt: Instant?
  var hasWarnedOfSilence = false
  var portKeeping = PortKeeping()
  var portMapper: PortMapper?
  private var repeated: [RepeatedTask] = []
  var meters = Meters()
  /// Channels whose call this node joins as soon as another member starts one.
  var awaitedCalls: [ChannelID] = []
  /// This node in each channel, as it was last reported.
  var ownRecords: [ChannelID: MemberRecord] = [:]
  /// Callers of `ping` that wait for answers.
  var pongListeners: [PongListener] = []
  var isStopping = false
  /// Empty between two reads; kept for its storage.
  private var receivedOutputs: [Node.Output] = []

  /// The event loop that the node lives on.
  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    loop.executor.asUnownedSerialExecutor()
  }

  private static let interfacePollSeconds: Int64 = 2
  static let resolveSeconds: Int64 = 10
  private static let wallClockSeconds: Int64 = 30

  private init(
    _ configuration: Configuration, node: consuming Node, sockets: Sockets, media: MediaThreads,
    loop: any EventLoop, opened: OpenedIdentity, channelNames: [String]
  ) {
    self.configuration = configuration
    logger = configuration.logger
    id = node.id
    self.node = node
    self.sockets = sockets
    self.media = media
    self.loop = loop
    dataDirectory = opened.directory
    store = opened.store
    writer = opened.store.map { StoreWriter($0) }
    listening = sockets.bound
    self.channelNames = channelNames
    readyAt = BootClock.now
  }

  /// Opens sockets, store and devices and starts the node; throws when one of them cannot be
  /// opened.
  public static func start(_ configuration: Configuration) async throws(MusterError) -> MusterNode {
    let opened = try openIdentity(configuration)
    let channels = try configuration.channels.map { channel throws(MusterError) in
      try ChannelOpening.open(channel, store: opened.store)
    }
    let listen = try configuration.listen.map { text throws(MusterError) in
      try Sockets.listenAddress(text)
    }
    let peers = try configuration.peers.map { text throws(MusterError) in
      try PeerResolver.Endpoint(text, option: "--peer")
    }
    let rendezvous = try configuration.rendezvous.map { text throws(MusterError) in
      try PeerResolver.Endpoint(text, option: "--rendezvous")
    }
    let dht = try DHTState(configuration.dht)
    let known = Set(NetworkInterface.list().map(\.name))
    for name in configuration.interfaces where !known.contains(name) {
      throw MusterError(
        "there is no interface \(name)",
        hint: "the ones that are up: \(known.sorted().joined(separator: ", "))",
        kind: .usage)
    }
    let media = try MediaThreads.open(configuration)
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    let reference = NodeReference()
    let sockets = try await Sockets.open(listen: listen, lan: configuration.lan, on: loop) {
      DatagramHandler { datagrams in
        reference.node?.assumeIsolated { $0.received(datagrams) }
      }
    }
    var entropy = Entropy.system
    let node = Node(
      identity: opened.identity, entropy: entropy, seed: entropy.u64(),
      configuration: core(configuration))
    opened.directory?.remember(displayName: node.configuration.name)
    let shell = MusterNode(
      configuration, node: node, sockets: sockets, media: media, loop: loop,
      opened: opened, channelNames: channels.map(\.setup.name))
    // On the loop: a datagram may have come already.
    try? await loop.submit { reference.node = shell }.get()
    await shell.begin(
      channels, peers: PeerResolver(endpoints: peers),
      rendezvous: PeerResolver(endpoints: rendezvous), dht: dht, warnings: opened.warnings)
    await shell.openControl()
    await shell.watchNetwork()
    return shell
  }

  private func begin(
    _ channels: [ChannelOpening.Result], peers: PeerResolver, rendezvous: PeerResolver,
    dht: DHTState?, warnings: [MusterError]
  ) {
    for warning in warnings { emit(.warning(warning)) }
    if configuration.lan, !sockets.hearsTheLAN {
      emit(
        .warning(
          MusterError(
            "cannot hear announcements on UDP port \(Sockets.Discovery.port)",
            hint: "others may still find this node; give addresses with --peer")))
    }
    startMedia()
    updateInterfaces()
    setWallClock()
    perform(
      node.setSources(
        media.videos.map(\.offer), hasAudio: media.hasAudioSource, at: now))
    peerNames = peers
    rendezvousNames = rendezvous
    self.dht = dht
    for channel in channels { enter(channel, call: configuration.call) }
    every(Self.interfacePollSeconds) { $0.updateInterfaces() }
    every(Self.wallClockSeconds) { $0.setWallClock() }
    every(1) { $0.emitStatistics() }
    resolve()
    every(Self.resolveSeconds) { $0.resolve() }
    every(Self.interfacePollSeconds) { $0.maintainPortMapping() }
    discoverServices()
    beginDHT()
  }

  func every(_ seconds: Int64, _ body: @escaping @Sendable (isolated MusterNode) -> Void) {
    let task = loop.scheduleRepeatedTask(initialDelay: .seconds(seconds), delay: .seconds(seconds))
    {
      [weak self] _ in
      self?.assumeIsolated { body($0) }
    }
    repeated.append(task)
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
      node.receive(datagram.bytes, from: datagram.source, at: now, into: &outputs)
    }
    perform(outputs)
    outputs.removeAll(keepingCapacity: true)
    receivedOutputs = outputs
  }

  // MARK: Outputs

  /// Carries out the outputs of the node; the only interpreter of them outside the simulator.
  func perform(_ outputs: [Node.Output]) {
    var remembered = Remembered()
    var hasEvents = false
    for output in outputs {
      switch output {
      case .send(let datagram, let address):
        sockets.enqueue(datagram, to: address)
      case .broadcast(let datagram):
        if configuration.lan { sockets.broadcast(datagram, via: interfaces) }
      case .event(let event, let channel):
        hasEvents = true
        nameRecording(event, in: channel)
        noteIdentity(event, in: channel, &remembered)
        guard let translated = hostEvent(event, in: channel) else { continue }
        // A message is reported once it is durable.
        if case .message = translated {
          remembered.messages.append(translated)
        } else {
          emit(translated)
        }
      case .encode(let stream, let layers):
        wantedLayers[stream.index] = layers
        updateEncoders()
      case .encodeKeyframe(let stream, let layer):
        media.video(stream)?.requestKeyframe(layer: layer)
      case .show(let frame, let link, let stream, let delay):
        show(frame, of: MemberStream(link, stream), after: delay)
      case .play(let audio, let link): media.playout?.play(audio, from: link, at: now)
      case .mediaEnded(let link, let stream): endMedia(of: link, stream)
      case .write(let change, let channel): remembered.changes.append(.init(change, in: channel))
      case .commit(let changes, let commit): remembered.commits.append((changes, commit))
      }
    }
    sockets.flush()
    remember(remembered)
    armTimer()
    guard hasEvents else { return }
    joinAwaitedCalls()
    reportOwnChanges()
  }

  private func armTimer() {
    guard let due = node.deadline else { return }
    if let timerDue, timerDue <= due { return }
    timer?.cancel()
    timerDue = due
    let delay = max(0, (due - now).wholeNanoseconds)
    timer = loop.scheduleTask(in: .nanoseconds(delay)) { [weak self] in
      self?.assumeIsolated { $0.timerFired() }
    }
  }

  private func timerFired() {
    timerDue = nil
    wakes.count(node.wake, at: now)
    perform(node.tick(at: now))
  }

  func emit(_ event: Event) {
    log(event)
    feed.yield(TimedEvent(secondsSinceStart: secondsSinceStart, event: event))
  }

  /// What happens, in order, for one consumer of any number.
  ///
  /// Consumers that subscribe before the first of them reads get everything since the start of the
  /// node, later ones what happens from now on. Up to `capacity` events wait for each; a consumer
  /// that is slower loses the oldest, and gets a `warning` with their number in their place. The
  /// stream ends with the node. Cancelling a task that waits for events ends that stream alone.
  public nonisolated func events(capacity: Int = 4096) -> AsyncStream<TimedEvent> {
    feed.subscribe(capacity: capacity)
  }

  // MARK: Leaving

  /// Leaves every channel so that members see it, closes files and devices, and ends the events.
  public func stop() async {
    guard !isStopping else { return }
    isStopping = true
    for task in repeated { task.cancel() }
    let channels = node.channelIDs
    for channel in channels { perform(node.leave(channel, at: now)) }
    // All of it within the second that leaving may take.
    async let portClosed: Void = closePort()
    async let serviceWithdrawn: Void = stopDiscoveringServices()
    await sendLeave(to: channels)
    await serviceWithdrawn
    timer?.cancel()
    await control?.close()
    await networkChanges?.close()
    await media.stop()
    await dht?.table.stop()
    await writer?.close()
    for channel in sockets.takeChannels() { try? await channel.close() }
    await portClosed
    feed.finish()
  }
}

/// Breaks the reference cycle between a node and its sockets.
private final class NodeReference: @unchecked Sendable {
  // Written once and read on the event loop.
  weak var node: MusterNode?
}

extension MusterNode {
  /// When the node was ready, in seconds since the process started.
  public nonisolated var secondsToReady: Double {
    (readyAt - ProcessClock.startedAt).inSeconds
  }

  /// Seconds since the process started, as events give them.
  public nonisolated var secondsSinceStart: Double {
    (BootClock.now - ProcessClock.startedAt).inSeconds
  }
}

/// When this process started; a command touches it first of all.
public enum ProcessClock {
  /// Boot time of the first use.
  public static let startedAt = BootClock.now
}
