import MusterBase
import MusterChannel
import MusterCongestion
import MusterCore
import MusterCrypto
import MusterMedia
import MusterWire

/// The interpreter of node outputs for the participants of a call, and their media.
extension CallSimulation {
  mutating func handle(_ event: Event) {
    switch event {
    case .join(let index): join(index)
    case .up(let index, let conditions): network.setAccess(up: conditions, of: nodes[index].address)
    case .down(let index, let conditions):
      network.setAccess(down: conditions, of: nodes[index].address)
    case .frame(let index): takeFrame(index)
    case .audio(let index): takeAudio(index)
    case .playout(let index): playout(index)
    case .startTCP:
      tcp = CubicFlow(at: now)
      send(segments: tcp?.send(at: now) ?? [])
    case .endTCP: tcp?.end()
    case .estimates: noteEstimates()
    case .end: isFinished = true
    }
  }

  mutating func deliver(_ arrived: Network.Delivery) {
    guard let receiver = index(of: arrived.to) else {
      // Broadcasts reach the server, too.
      guard arrived.datagram.count == CubicFlow.acknowledgementBytes else { return }
      return send(segments: tcp?.receive(acknowledgement: arrived.datagram, at: now) ?? [])
    }
    guard let sender = index(of: arrived.from) else {
      return receive(segment: arrived, at: receiver)
    }
    timeline.delivered(arrived.datagram, from: sender, to: receiver, at: now)
    meters[meterIndex(from: sender, to: receiver)].received(arrived, at: now)
    input(receiver) { $0.receive(arrived.datagram, from: arrived.from, at: $1) }
  }

  /// The index of the participant at an address; nil for the server of the TCP flow.
  private func index(of address: Address) -> Int? {
    nodes.firstIndex { $0.address == address }
  }

  mutating func perform(_ outputs: [Node.Output], of index: Int) {
    var writes = NodeWrites()
    for output in outputs {
      switch output {
      case .write, .commit: writes.take(output)
      case .send(let datagram, let address, let serviceClass):
        network.send(
          datagram, as: serviceClass, from: nodes[index].address, to: address, at: now)
      case .broadcast(let datagram):
        network.broadcast(datagram, from: nodes[index].address, at: now)
      case .encode(_, let targets): encoders[index]?.encode(targets)
      case .encodeLongPackets(let areNeeded): nodes[index].source.encodeLongPackets(areNeeded)
      case .encodeKeyframe(_, let layer): encoders[index]?.requestKeyframe(layer)
      case .show(let frame, let link, _): show(frame, of: link, at: index)
      case .play(let audio, let link):
        guard let sender = owners[link.peer] else { break }
        meters[meterIndex(from: sender, to: index)].received(audio, at: now)
      case .mediaEnded(let link, let stream):
        if let sender = owners[link.peer] { frameChecker.ended(stream, from: sender, at: index) }
      case .event(.layer(let peer, _, .received, _), in: _):
        guard let sender = owners[peer] else { break }
        meters[meterIndex(from: sender, to: index)].changedLayer(at: now)
      case .event: break
      }
    }
    submit(writes, of: index)
  }

  mutating func written(_ job: Disk.Job, at index: Int) {}

  // MARK: Processes

  private mutating func join(_ index: Int) {
    let participant = scenario.participants[index]
    nodes[index].run = 1
    var configuration = Node.Configuration()
    configuration.name = participant.name
    configuration.videoBitrate = participant.videoKilobitsPerSecond
    configuration.requested = participant.watches ? .best : .none
    nodes[index].process = Process(
      Node(
        identity: nodes[index].identity, entropy: .seeded(prng.next()), seed: prng.next(),
        configuration: configuration))
    nodes[index].isInChannel = true
    let own = nodes[index].address
    let offers = [encoders[index]?.offer].compactMap { $0 }
    let wall = WallTime.seconds(now) * 1000
    input(index) { node, clock in
      node.setWallClock(millisecondsSince1970: wall, at: clock)
      node.setFinders(rendezvousServers: 0, peers: false, dht: false)
      return []
    }
    input(index) { $0.setOwnAddresses([own], at: $1) }
    input(index) { $0.setSources(offers, hasAudio: participant.speaks, at: $1) }
    let setup = ChannelSetup(name: scenario.name, key: key)
    input(index) { $0.join(setup, call: true, at: $1) }
    // Cameras do not capture at the same moments.
    if !offers.isEmpty { schedule(.frame(index), in: prng.duration(.zero, .milliseconds(33))) }
    if participant.speaks { schedule(.audio(index), in: .zero) }
    schedule(.playout(index), in: .zero)
  }

  // MARK: Media

  private mutating func takeFrame(_ index: Int) {
    schedule(.frame(index), in: .seconds(1) / EncoderModel.framesPerSecond)
    let clock = nodes[index].local(now)
    for frame in encoders[index]?.frames(capturedAt: clock, &prng) ?? [] {
      input(index) { $0.sendVideo(frame, at: $1) }
    }
  }

  /// Sends a packet of audio, always at the level of speech.
  private mutating func takeAudio(_ index: Int) {
    schedule(.audio(index), in: Self.packetInterval)
    for receiver in nodes.indices where receiver != index {
      meters[meterIndex(from: index, to: receiver)].sentAudio(at: now)
    }
    let clock = nodes[index].local(now)
    let audio = nodes[index].source.audio(capturedAt: clock, level: 20)
    input(index) { $0.sendAudio(audio, at: $1) }
  }

  /// Plays 20 ms of everyone's audio, and reports it to the node for lip sync. (`Playout`
  /// reports every tenth packet, to save calls.)
  private mutating func playout(_ index: Int) {
    schedule(.playout(index), in: Self.packetInterval)
    for sender in nodes.indices where sender != index {
      let joinedAt = Instant.zero + scenario.participants[sender].joinsAt
      let timestamp = meters[meterIndex(from: sender, to: index)].play(at: now) {
        joinedAt + Self.packetInterval * (Int($0) - 1)
      }
      guard let timestamp else { continue }
      nodes[index].process?.node.noteAudioPlayout(
        of: LinkID(channel: channel, peer: nodes[sender].identity.id), timestamp: timestamp,
        playedAt: nodes[index].local(now))
    }
  }

  private mutating func noteEstimates() {
    schedule(.estimates, in: Self.estimateInterval)
    for sender in nodes.indices {
      for peer in nodes[sender].process?.node.statistics(at: now) ?? [] {
        guard let receiver = owners[peer.link.peer], let estimate = peer.estimate else { continue }
        meters[meterIndex(from: sender, to: receiver)].estimated(
          kilobitsPerSecond: estimate.rate.kbps, at: now)
      }
    }
  }

  private mutating func show(
    _ frame: ReceivedFrame, of link: LinkID, at index: Int
  ) {
    guard let sender = owners[link.peer] else { return }
    let size = VP8FrameHeader.keyframeSize(frame.data[...]).map { VideoSize(width: $0, height: $1) }
    if frame.isShown {
      meters[meterIndex(from: sender, to: index)].shown(size: size, at: now + frame.delay)
    }
    let fault = frameChecker.decoded(
      frame.data, layer: frame.layer, isShown: frame.isShown, from: sender, at: index)
    if let fault { violated("frames", fault) }
  }

  // MARK: The TCP flow

  mutating func tickOthers() {
    send(segments: tcp?.tick(at: now) ?? [])
  }

  private mutating func send(segments: [[UInt8]]) {
    guard let plan = scenario.tcp else { return }
    for segment in segments {
      network.send(segment, from: server, to: nodes[plan.to].address, at: now)
    }
  }

  private mutating func receive(segment arrived: Network.Delivery, at receiver: Int) {
    let index = Int((now - .zero) / FlowMeter.interval)
    while tcpPoints.count <= index { tcpPoints.append(0) }
    tcpPoints[index] += UInt64(arrived.datagram.count + Pipe.headerBytes)
    guard let acknowledgement = tcp?.receive(segment: arrived.datagram) else { return }
    network.send(acknowledgement, from: nodes[receiver].address, to: server, at: now)
  }
}
