import MusterBase
import MusterChannel
import MusterCongestion
import MusterCore
import MusterCrypto
import MusterLink
import MusterMedia
import MusterSimulator
import MusterWire

/// Whole nodes on a virtual network and clock, all on one LAN; pairs may be partitioned.
struct CoreWorld {
  /// A reference, because a `Node` cannot be copied.
  final class Host {
    var node: Node
    fileprivate(set) var address: Address
    /// The time until which the uplink sends what it has queued.
    fileprivate var uplinkBusyUntil = Instant.zero
    /// The time until which its downlink delivers what it has queued.
    fileprivate var downlinkBusyUntil = Instant.zero
    /// The address that it had before `move`.
    fileprivate var formerAddress: Address?
    var source: SyntheticSource
    /// The datagrams that the host received and sent, in order.
    var received: [Flight] = []
    var sent: [Flight] = []
    /// The events that the node has reported, in order.
    var events: [NodeEvent] = []
    /// The number of others' frames shown, by the link to their sender.
    var shown = PeerTable<LinkID, Int>()
    /// The number of frames shown by stream, and the layers requested of the encoder.
    var shownStreams: [StreamID: Int] = [:]
    var targets: [StreamID: [EncoderTarget]] = [:]
    var encoded: [StreamID: [Int]] { targets.mapValues { $0.map(\.layer) } }
    /// The number of keyframes requested of the encoder.
    var keyframes = 0
    /// The capture time by the sender's media clock minus the arrival time, of audio and frames.
    var captureOffsets: [Duration] = []
    /// The times at which audio of each member arrived.
    var heard: [NodeID: [Instant]] = [:]

    /// The ids of the calls that began, in order.
    var starts: [CallID] {
      events.compactMap { event in
        guard case .channel(.callStarted(let call)) = event else { return nil }
        return call.info.id
      }
    }

    /// Why calls ended, in order.
    var ends: [String] {
      events.compactMap { event in
        guard case .channel(.callEnded(_, let reason)) = event else { return nil }
        return reason
      }
    }

    /// Discards the events and the arrival times of audio so far.
    func clear() {
      events = []
      heard = [:]
    }

    func isReached(at address: Address) -> Bool {
      address == self.address || address == formerAddress
    }

    init(node: consuming Node, address: Address, source: SyntheticSource) {
      self.node = node
      self.address = address
      self.source = source
    }
  }

  struct Flight {
    let datagram: [UInt8]
    let serviceClass: ServiceClass
    let from: Address
    let to: Address
    fileprivate(set) var arrivesAt: Instant
    /// The time at which the receiver comes to it.
    var handledAt: Instant

    var kind: DatagramKind? { DatagramKind(of: datagram) }
  }

  private(set) var hosts: [Host] = []
  private(set) var now = Instant.zero + .seconds(1000)
  /// The one-way delay of all datagrams.
  var delay = Duration.milliseconds(10)
  /// The time for which a host's datagrams wait until its node comes to them.
  var lag: (_ index: Int) -> Duration = { _ in .zero }
  /// Whether a datagram from one host arrives at another.
  var passes: (_ from: Int, _ to: Int, DatagramKind?) -> Bool = { _, _, _ in true }
  /// What the uplink of a host carries, with a queue of 300 ms; nil if it is unlimited.
  var uplink: (_ from: Int) -> DataRate? = { _ in nil }
  /// Whether packets of a host to another one take its uplink; others reach it directly.
  var takesUplink: (_ from: Int, _ to: Int) -> Bool = { _, _ in true }
  /// What the downlink of a host carries, with a queue of 300 ms; nil if it is unlimited.
  var downlink: (_ to: Int) -> DataRate? = { _ in nil }
  /// The least size of the data packets that arrive from a host.
  var leastSize: (_ from: Int) -> Int = { _ in 0 }
  /// Bytes added to each frame of a host's source.
  var weight: (Int) -> Int = { _ in 0 }
  /// Whether the frames of a host's source are as large as its encoders' bitrates.
  var fillsBitrate: (Int) -> Bool = { _ in false }
  /// Whether a host sends audio, and the level of what it sends.
  var speaks: (Int) -> Bool = { _ in true }
  var level: (_ from: Int, Instant) -> UInt8 = { _, _ in 20 }
  /// Packets of 1000 bytes that a host sends along with each of its audio packets, which keep to no
  /// estimate.
  var excess: (Int) -> Int = { _ in 0 }

  /// The wall clock of all hosts, in milliseconds since 1970.
  var wallMilliseconds: UInt64 {
    1_700_000_000_000 + UInt64((now - Instant.zero - .seconds(1000)).inMilliseconds)
  }

  private let seed: UInt64
  private var flights: [Flight] = []
  private var nextFrame: Instant
  private var nextAudio: Instant
  private var prng: PRNG

  private static let frameInterval = Duration.milliseconds(
    1000 / SyntheticSource.framesPerSecond)
  private static let audioInterval = Duration.milliseconds(20)

  /// Nodes in the order of their ids. The seed changes everything but the ids.
  init(
    _ count: Int, seed: UInt64 = 1,
    configure: (_ index: Int, inout Node.Configuration) -> Void = { _, _ in }
  ) {
    self.seed = seed
    prng = PRNG(seed: seed)
    nextFrame = now + Self.frameInterval
    nextAudio = now + Self.audioInterval
    let identities = (1...count).map { number -> Identity in
      var entropy = Entropy.seeded(UInt64(number))
      return Identity(generating: &entropy)
    }
    for (index, identity) in identities.sorted(by: { $0.id < $1.id }).enumerated() {
      var configuration = Node.Configuration()
      configuration.name = "\(Marker.text) \(index)"
      configure(index, &configuration)
      var node = Node(
        identity: identity, entropy: entropy(of: index), seed: jitter(of: index),
        configuration: configuration)
      node.setWallClock(millisecondsSince1970: wallMilliseconds, at: now)
      hosts.append(
        Host(
          node: node,
          address: Address(host: .v4(0x0A00_0001 + UInt32(index)), port: 4000),
          source: SyntheticSource(sender: UInt8(index), run: 1, layers: 1)))
      let offers = hosts[index].source.offers
      call(index) { $0.setSources(offers, hasAudio: true, at: $1) }
    }
  }

  func entropy(of index: Int) -> Entropy { .seeded(seed &* 1000 &+ UInt64(index)) }
  func jitter(of index: Int) -> UInt64 { seed &* 2000 &+ UInt64(index) }

  func id(_ index: Int) -> NodeID { hosts[index].node.id }

  /// The channel's call, as a host sees it.
  func activeCall(_ index: Int, in channel: ChannelID) -> ActiveCall? {
    hosts[index].node.call(in: channel)
  }

  /// Lets all hosts enter the channel and its call.
  mutating func join(_ name: String, _ key: ChannelKey) {
    for index in hosts.indices {
      call(index) { $0.join(ChannelSetup(name: name, key: key), call: true, at: $1) }
    }
  }

  /// Restarts the node of a host, with the same identity and address and no stored state.
  mutating func restart(_ index: Int) {
    var configuration = Node.Configuration()
    configuration.name = "\(Marker.text) \(index)"
    let run = prng.next()
    var node = Node(
      identity: hosts[index].node.identity, entropy: .seeded(run), seed: run,
      configuration: configuration)
    node.setWallClock(millisecondsSince1970: wallMilliseconds, at: now)
    hosts[index].node = node
    hosts[index].source = SyntheticSource(sender: UInt8(index), run: 2, layers: 1)
    let offers = hosts[index].source.offers
    call(index) { $0.setSources(offers, hasAudio: true, at: $1) }
  }

  /// Gives a host another address, from which it sends from now on: the given one, or else another
  /// port. Datagrams to the former one still arrive.
  mutating func move(_ index: Int, to address: Address? = nil) {
    let host = hosts[index]
    host.formerAddress = host.address
    host.address =
      address ?? Address(host: host.address.host, port: host.address.port + 1)
  }

  /// Lets one host enter the channel and its call.
  mutating func joinAlone(_ index: Int, _ name: String, _ key: ChannelKey) {
    call(index) { $0.join(ChannelSetup(name: name, key: key), call: true, at: $1) }
  }

  /// The peer's address on a host's link; nil if the link is relayed or missing.
  func address(from index: Int, to other: Int, in channel: ChannelID) -> Address? {
    hosts[index].node.statistics(at: now).first {
      $0.link == LinkID(channel: channel, peer: id(other))
    }?.address
  }

  /// The neighbour that relays a host's link to another host.
  func relay(from index: Int, to other: Int, in channel: ChannelID) -> NodeID? {
    hosts[index].node.statistics(at: now).first {
      $0.link == LinkID(channel: channel, peer: id(other))
    }?.via
  }

  /// A host's estimate of the path of its link to another host.
  func estimate(from index: Int, to other: Int, in channel: ChannelID) -> DataRate? {
    hosts[index].node.statistics(at: now).first {
      $0.link == LinkID(channel: channel, peer: id(other))
    }?.estimate?.rate
  }

  /// The longest time without audio of a member since it was first heard, until now; nil if it was
  /// not heard at all.
  func longestSilence(from speaker: Int, to index: Int) -> Duration? {
    guard let times = hosts[index].heard[id(speaker)] else { return nil }
    return zip(times, times.dropFirst() + [now]).map { $1 - $0 }.max()
  }

  /// Offers this number of layers of a stream; 0 withdraws it.
  mutating func offer(_ layers: Int, of stream: StreamID, by index: Int) {
    hosts[index].source.setLayers(layers, of: stream)
    let offers = hosts[index].source.offers
    call(index) { $0.setSources(offers, hasAudio: true, at: $1) }
  }

  /// Runs a command on a node.
  mutating func command(_ index: Int, _ body: (inout Node, Instant) -> [Node.Output]) {
    call(index, body)
  }

  mutating func run(for duration: Duration) {
    let end = now + duration
    while let next = nextEvent, next <= end {
      now = max(now, next)
      deliver()
      if nextFrame <= now { takeFrames() }
      if nextAudio <= now { takeAudio() }
      for index in hosts.indices {
        if let deadline = hosts[index].node.deadline, deadline <= now {
          call(index) { $0.tick(at: $1) }
        }
      }
    }
    now = end
  }

  private var nextEvent: Instant? {
    let arrivals = flights.map(\.handledAt).min()
    return hosts.reduce(soonest(arrivals, min(nextFrame, nextAudio))) {
      soonest($0, $1.node.deadline)
    }
  }

  private mutating func deliver() {
    let due = flights.filter { $0.handledAt <= now }
    flights.removeAll { $0.handledAt <= now }
    for flight in due {
      for index in hosts.indices where hosts[index].isReached(at: flight.to) {
        hosts[index].received.append(flight)
        call(index) { node, now in
          var out: [Node.Output] = []
          node.receive(
            flight.datagram, from: flight.from, arrivedAt: flight.arrivesAt, at: now, into: &out)
          return out
        }
      }
    }
  }

  private mutating func takeFrames() {
    nextFrame = now + Self.frameInterval
    for index in hosts.indices {
      for stream in StreamID.all {
        for var frame in hosts[index].source.frames(of: stream, capturedAt: now, &prng) {
          frame.data += [UInt8](repeating: 7, count: weight(index))
          if fillsBitrate(index) { fill(&frame, of: stream, by: index) }
          call(index) { $0.sendVideo(frame, of: stream, at: $1) }
        }
      }
    }
  }

  private func fill(_ frame: inout EncodedFrame, of stream: StreamID, by index: Int) {
    let target = hosts[index].targets[stream]?.first { $0.layer == frame.layer }
    let rate = DataRate(kbps: Double(target?.kilobitsPerSecond ?? 0))
    let bytes = Int(rate.bytes(in: Self.frameInterval)) - frame.data.count
    frame.data += [UInt8](repeating: 7, count: max(bytes, 0))
  }

  private mutating func takeAudio() {
    nextAudio = now + Self.audioInterval
    for index in hosts.indices where speaks(index) {
      let audio = hosts[index].source.audio(capturedAt: now, level: level(index, now))
      call(index) { $0.sendAudio(audio, at: $1) }
      for _ in 0..<excess(index) {
        var more = audio
        more.data = [UInt8](repeating: 7, count: 1_000)
        call(index) { $0.sendAudio(more, at: $1) }
      }
    }
  }

  mutating func call(_ index: Int, _ body: (inout Node, Instant) -> [Node.Output]) {
    for output in body(&hosts[index].node, now) {
      switch output {
      case .event(let event, in: _): hosts[index].events.append(event)
      case .commit(_, let commit):
        call(index) { $0.finish(commit, isDurable: true, at: $1) }
      case .send(let datagram, let to, let serviceClass):
        send(datagram, as: serviceClass, from: index, to: to)
      case .broadcast(let datagram):
        for other in hosts.indices where other != index {
          send(datagram, from: index, to: hosts[other].address)
        }
      case .encode(let stream, let targets):
        hosts[index].source.encode(targets.map(\.layer), of: stream)
        hosts[index].targets[stream] = targets
      case .encodeKeyframe(let stream, let layer):
        hosts[index].source.requestKeyframe(layer, of: stream)
        hosts[index].keyframes += 1
      case .play(let audio, let link):
        hosts[index].heard[link.peer, default: []].append(now)
        hosts[index].captureOffsets += audio.capturedAt.map { [$0 - now] } ?? []
      case .show(let frame, let link, let stream):
        hosts[index].captureOffsets += frame.capturedAt.map { [$0 - now] } ?? []
        hosts[index].shown[link] = (hosts[index].shown[link] ?? 0) + 1
        hosts[index].shownStreams[stream, default: 0] += 1
      default: break
      }
    }
  }

  private mutating func send(
    _ datagram: [UInt8], as serviceClass: ServiceClass = .standard, from index: Int,
    to address: Address
  ) {
    let bytes = datagram.count + 28
    let receiver = hosts.firstIndex { $0.isReached(at: address) }
    let uplink = receiver.map { takesUplink(index, $0) } ?? true ? uplink(index) : nil
    guard let leavesAt = Self.pass(bytes, uplink, &hosts[index].uplinkBusyUntil, at: now)
    else { return }
    var flight = Flight(
      datagram: datagram, serviceClass: serviceClass, from: hosts[index].address, to: address,
      arrivesAt: leavesAt + delay, handledAt: leavesAt + delay)
    hosts[index].sent.append(flight)
    guard let other = receiver,
      passes(index, other, flight.kind),
      flight.kind != .data || datagram.count >= leastSize(index)
    else { return }
    guard
      let arrivesAt = Self.pass(
        bytes, downlink(other), &hosts[other].downlinkBusyUntil, at: flight.arrivesAt)
    else { return }
    flight.arrivesAt = arrivesAt
    flight.handledAt = flight.arrivesAt + lag(other)
    flights.append(flight)
  }

  /// The time at which a link has passed a packet on; nil if its queue of 300 ms is full.
  private static func pass(
    _ bytes: Int, _ rate: DataRate?, _ busyUntil: inout Instant, at now: Instant
  ) -> Instant? {
    guard let rate else { return now }
    let start = max(busyUntil, now)
    guard start - now <= .milliseconds(300) else { return nil }
    busyUntil = start + .seconds(Double(bytes) / rate.bytes(in: .seconds(1)))
    return busyUntil
  }
}
