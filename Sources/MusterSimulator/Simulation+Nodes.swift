import MusterBase
import MusterCore
import MusterCrypto
import MusterLink
import MusterMedia
import MusterWire

/// The simulator's half of what a shell does: it carries out what nodes ask for.
extension Simulation {
  mutating func deliver(_ arrived: Network.Delivery) {
    guard violation == nil, let receiver = place(of: arrived.to) else { return }
    let sender = place(of: arrived.from)
    timeline.delivered(arrived.datagram, from: sender ?? 255, to: receiver, at: now)
    bytes += UInt64(arrived.datagram.count)
    guard nodes[receiver].node != nil else { return }
    input(receiver) { $0.receive(arrived.datagram, from: arrived.from, at: $1) }
    // Only what its receiver could have acted on can be a replay.
    guard plan.isOn(.attack), sender != nil, nodes[receiver].isInChannel else { return }
    attacker.hear(
      .init(datagram: arrived.datagram, from: arrived.from, to: arrived.to))
  }

  /// Hands a node an input and carries out what it asks for.
  mutating func input(_ place: Int, _ body: (inout Node, Instant) -> [Node.Output]) {
    perform(nodes[place].call(at: now, body), of: place)
  }

  mutating func perform(_ outputs: [Node.Output], of place: Int) {
    for output in outputs {
      switch output {
      case .send(let datagram, let address): send(datagram, from: place, to: address)
      case .broadcast(let datagram): broadcast(datagram, from: place)
      case .event(let event, in: _): note(event, of: place)
      case .encode(let layers): nodes[place].source.encode(layers)
      case .encodeKeyframe(let layer): nodes[place].source.requestKeyframe(layer)
      case .show(let frame, let link, let delay): show(frame, of: link, at: place, after: delay)
      case .play(let audio, let link): play(audio, of: link, at: place)
      case .mediaEnded(let link):
        // What a node was before it lost its memory says nothing of what it is now.
        guard let sender = owners[link.peer], nodes[sender].identity.id == link.peer else {
          continue
        }
        frameChecker.ended(from: sender, at: place)
        shownAt[place * nodes.count + sender] = nil
      }
    }
  }

  // MARK: Onto the wire

  private mutating func send(_ datagram: [UInt8], from place: Int, to address: Address) {
    check(datagram, from: place)
    if let fault = silence.sent(datagram, to: address) {
      violated("silence", "\(nodes[place].label): \(fault)")
    }
    network.send(datagram, from: nodes[place].address, to: address, at: now)
  }

  private mutating func broadcast(_ datagram: [UInt8], from place: Int) {
    check(datagram, from: place)
    guard usesBroadcast else { return }
    network.broadcast(datagram, from: nodes[place].address, at: now)
  }

  private mutating func check(_ datagram: [UInt8], from place: Int) {
    if let fault = nonces.sent(datagram) { violated("nonces", "\(nodes[place].label): \(fault)") }
    if let fault = plaintext.sent(datagram) {
      violated("plaintext", "\(nodes[place].label): \(fault)")
    }
    if let fault = bounds.sent(datagram) { violated("bounds", "\(nodes[place].label): \(fault)") }
  }

  // MARK: Media

  private mutating func show(
    _ frame: ReceivedFrame, of link: LinkID, at place: Int, after delay: Duration
  ) {
    frames += 1
    guard let sender = owners[link.peer] else {
      violated("frames", "\(nodes[place].label) shows a picture of a stranger")
      return
    }
    shownAt[place * nodes.count + sender] = now
    let fault = frameChecker.shown(frame.data, layer: frame.layer, from: sender, at: place)
    if let fault { violated("frames", fault) }
    if let fault = bounds.shown(after: delay) { violated("bounds", fault) }
  }

  private mutating func play(_ audio: ReceivedAudio, of link: LinkID, at place: Int) {
    audioPackets += 1
    guard let sender = owners[link.peer] else {
      violated("delivery", "\(nodes[place].label) plays a stranger")
      return
    }
    if let fault = delivery.played(audio.payload, from: sender, at: place) {
      violated("delivery", fault)
    }
    // Out of the loudspeaker after a steady 60 ms, as pictures should learn.
    let playedAt = nodes[place].local(now) + .milliseconds(60)
    nodes[place].node?.noteAudioPlayout(
      of: link, timestamp: audio.timestamp, playedAt: playedAt)
  }

  mutating func takePicture(_ place: Int, run: Int) {
    guard nodes[place].run == run, nodes[place].node != nil else { return }
    schedule(
      .picture(place, run: run), in: .milliseconds(1000 / SyntheticSource.framesPerSecond))
    let clock = nodes[place].local(now)
    for frame in nodes[place].source.frames(capturedAt: clock, &prng) {
      input(place) { $0.sendVideo(frame, at: $1) }
    }
  }

  /// Speech comes in spurts: an encoder with DTX sends next to nothing between them (RFC 7587
  /// 3.1.3).
  mutating func takeSound(_ place: Int, run: Int, packetsLeft: Int, level: UInt8) {
    guard nodes[place].run == run, nodes[place].node != nil else { return }
    guard packetsLeft > 0 else {
      let next = 4 + prng.below(20)
      let level: UInt8 = prng.chance(0.7) ? 20 : 60
      schedule(
        .sound(place, run: run, packetsLeft: next, level: level),
        in: prng.duration(.milliseconds(500), .seconds(6)))
      return
    }
    schedule(
      .sound(place, run: run, packetsLeft: packetsLeft - 1, level: level), in: .milliseconds(20))
    let clock = nodes[place].local(now)
    let audio = nodes[place].source.audio(capturedAt: clock, level: level)
    input(place) { $0.sendAudio(audio, at: $1) }
  }

  // MARK: Who is who

  mutating func adopt(_ identity: Identity, by place: Int) {
    nodes[place].identity = identity
    owners[identity.id] = place
    plaintext.add(identity.id)
    bounds.identities += 1
  }

  func place(of address: Address) -> Int? {
    guard case .v4(let ip) = address.host, ip >= Self.firstHost else { return nil }
    let place = Int(ip - Self.firstHost)
    return place < nodes.count ? place : nil
  }

  func label(_ id: NodeID) -> String {
    guard let place = owners[id] else { return id.short }
    return nodes[place].identity.id == id ? nodes[place].label : "\(nodes[place].label)'"
  }
}
