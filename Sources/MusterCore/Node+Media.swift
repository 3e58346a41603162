import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterMedia
import MusterWire

extension Node {
  // MARK: From the encoders

  /// One encoded picture of one layer: packetised once, then sent to whoever gets that layer.
  public mutating func sendVideo(_ frame: EncodedFrame, at now: Instant) -> [Output] {
    guard localMedia.sendsVideo, let packets = localMedia.packetize(frame) else { return [] }
    var out: [Output] = []
    if frame.isKeyframe {
      localMedia.keyframeSent(layer: frame.layer, at: now)
      switchLayers(to: frame.layer, &out)
      selectLayers(at: now, &out)
    }
    for index in 0..<peers.count {
      guard peers[at: index].outgoing?.layer == frame.layer else { continue }
      sendVideo(packets, toPeerAt: index, at: now, &out)
    }
    return out
  }

  /// A keyframe of `layer` is at hand: who waits for that layer gets it from here on.
  private mutating func switchLayers(to layer: Int, _ out: inout [Output]) {
    for index in 0..<peers.count where peers[at: index].outgoing?.target == layer {
      let link = peers.keys[index]
      guard let from = peers[at: index].outgoing?.layer else {
        peers[at: index].outgoing?.layer = layer
        emitLayer(link, from: nil, to: layer, &out)
        continue
      }
      guard from != layer else { continue }
      peers[at: index].outgoing?.layer = layer
      emitLayer(link, from: from, to: layer, &out)
    }
  }

  private mutating func sendVideo(
    _ frame: PacketizedFrame, toPeerAt index: Int, at now: Instant, _ out: inout [Output]
  ) {
    let link = peers.keys[index]
    for (position, payload) in frame.payloads.enumerated() {
      let isLast = position == frame.payloads.count - 1
      guard
        let header = peers[at: index].outgoing?.video[frame.layer].send(
          payload, marker: isLast, timestamp: frame.timestamp, audioLevel: nil, at: now)
      else { return }
      send(header.encoded, payload[...], over: link, at: now, &out)
      peers[at: index].outgoing?.statistics.bytes &+= UInt64(payload.count)
    }
    peers[at: index].outgoing?.statistics.frames &+= 1
  }

  /// One Opus packet of this node's own microphone, sent to everyone in the call.
  public mutating func sendAudio(_ audio: EncodedAudio, at now: Instant) -> [Output] {
    var out: [Output] = []
    if localMedia.heard(level: audio.level, at: now) { out += change(at: now) { _ in } }
    guard localMedia.sendsAudio else { return out }
    let timestamp = localMedia.audioTimestamps.next(capturedAt: audio.capturedAt)
    for index in 0..<peers.count {
      let link = peers.keys[index]
      guard peers[at: index].outgoing?.allowsAudio ?? false,
        let header = peers[at: index].outgoing?.audio.send(
          audio.data, marker: false, timestamp: timestamp, audioLevel: audio.level, at: now)
      else { continue }
      send(header.encoded, audio.data[...], over: link, at: now, &out)
      peers[at: index].outgoing?.statistics.audioPackets &+= 1
      peers[at: index].outgoing?.statistics.bytes &+= UInt64(audio.data.count)
    }
    return out
  }

  // MARK: Who gets what

  /// Begins and ends media with members as they come into the call and go.
  mutating func updateMedia(in channel: ChannelID, at now: Instant, _ out: inout [Output]) {
    guard let entry = channels[channel] else { return }
    let call = entry.state.isInCall ? entry.state.call : nil
    for link in peers.keys where link.channel == channel {
      let shares = call?.participants.contains(link.peer) ?? false
      if shares {
        beginMedia(with: link, at: now, &out)
      } else {
        endMedia(with: link, at: now, &out)
      }
    }
    updateRights(in: channel)
    updateCallState(in: channel, at: now, &out)
    selectLayers(at: now, &out)
  }

  /// What roles and this channel's own muting let through, both ways.
  private mutating func updateRights(in channel: ChannelID) {
    guard let entry = channels[channel] else { return }
    let sendsAudio = mayItself(.sendAudio, entry) && !entry.muted.contains(.audioMuted)
    let sendsVideo = mayItself(.sendVideo, entry) && !entry.muted.contains(.videoMuted)
    for index in 0..<peers.count where peers.keys[index].channel == channel {
      let peer = peers.keys[index].peer
      peers[at: index].outgoing?.allowsAudio = sendsAudio
      peers[at: index].outgoing?.allowsVideo = sendsVideo
      peers[at: index].incoming?.allowsAudio = entry.state.may(.sendAudio, peer)
      peers[at: index].incoming?.allowsVideo = entry.state.may(.sendVideo, peer)
    }
  }

  private func mayItself(_ capability: Capability, _ entry: Channel) -> Bool {
    configuration.ignoresOwnRole || entry.state.may(capability, identity.id)
  }

  private mutating func beginMedia(
    with link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    guard let index = peers.index(of: link), peers[at: index].incoming == nil else { return }
    let requested = channels[link.channel]?.requested ?? configuration.requested
    var incoming = IncomingMedia(requested: requested, at: now)
    if let roundTrip = roundTrip(of: link) { incoming.video.setRoundTrip(roundTrip) }
    peers[at: index].incoming = incoming
    peers[at: index].outgoing = OutgoingMedia(prng: &prng, at: now)
    peers[at: index].nextRequestAt = now
    pingSoon(link, at: now)
    send([.requested(incoming.requested)], over: link, at: now, &out)
  }

  mutating func endMedia(in channel: ChannelID, at now: Instant, _ out: inout [Output]) {
    for link in peers.keys where link.channel == channel { endMedia(with: link, at: now, &out) }
    selectLayers(at: now, &out)
  }

  mutating func endMedia(with link: LinkID, at now: Instant, _ out: inout [Output]) {
    guard let index = peers.index(of: link), let incoming = peers[at: index].incoming else {
      return
    }
    if let layer = peers[at: index].outgoing?.layer {
      emitLayer(link, from: layer, to: nil, why: .ended, &out)
    }
    if incoming.layer != nil {
      out.append(
        .event(
          .layer(link.peer, .received, from: incoming.layer, to: nil, why: .ended),
          in: link.channel))
    }
    peers[at: index].incoming = nil
    peers[at: index].outgoing = nil
    out.append(.mediaEnded(link))
  }

  /// Asks others for a picture no larger than `requested`; for one member, or for all when `member` is
  /// nil.
  public mutating func watch(
    _ requested: RequestedResolution, of member: NodeID?, in channel: ChannelID, at now: Instant
  ) -> [Output] {
    var out: [Output] = []
    if member == nil { _ = channels.update(channel) { $0.requested = requested } }
    for link in peers.keys where link.channel == channel && (member ?? link.peer) == link.peer {
      guard let index = peers.index(of: link), peers[at: index].incoming != nil else { continue }
      peers[at: index].incoming?.requested = requested
      send([.requested(requested)], over: link, at: now, &out)
    }
    return out
  }

  /// Chooses every receiver's layer anew and tells the host which layers are wanted.
  mutating func selectLayers(at now: Instant, _ out: inout [Output]) {
    for index in 0..<peers.count where peers[at: index].outgoing != nil {
      chooseLayer(forPeerAt: index, at: now, &out)
    }
    var wanted: [Int] = []
    for layer in 0..<Limits.spatialLayers {
      let isWanted = (0..<peers.count).contains { index in
        let outgoing = peers[at: index].outgoing
        return outgoing?.layer == layer || outgoing?.target == layer
      }
      if isWanted { wanted.append(layer) }
    }
    guard wanted != localMedia.encoded else { return }
    localMedia.encoded = wanted
    out.append(.encode(layers: wanted))
  }

  private mutating func chooseLayer(
    forPeerAt index: Int, at now: Instant, _ out: inout [Output]
  ) {
    let requested = peers[at: index].requested
    let sendsVideo = localMedia.sendsVideo && peers[at: index].outgoing?.allowsVideo ?? false
    let choice = sendsVideo ? LayerChoice.layer(for: requested, among: localMedia.layers) : nil
    guard choice != peers[at: index].outgoing?.target else { return }
    peers[at: index].outgoing?.target = choice
    if let choice {
      requestKeyframe(layer: choice, at: now, &out)
    } else if let layer = peers[at: index].outgoing?.layer {
      peers[at: index].outgoing?.layer = nil
      let why: LayerReason = sendsVideo ? .requested : .muted
      emitLayer(peers.keys[index], from: layer, to: nil, why: why, &out)
    }
  }

  mutating func requestKeyframe(layer: Int, at now: Instant, _ out: inout [Output]) {
    if localMedia.requestKeyframe(layer: layer, at: now) {
      out.append(.encodeKeyframe(layer: layer))
    }
  }

  private mutating func emitLayer(
    _ link: LinkID, from: Int?, to: Int?, why: LayerReason? = nil, _ out: inout [Output]
  ) {
    func layer(_ index: Int?) -> VideoLayer? {
      guard let index, localMedia.layers.indices.contains(index) else { return nil }
      return localMedia.layers[index]
    }
    let reason = why ?? (from == nil ? .started : .requested)
    let newest = layer(to)
    _ = peers.update(link) { peer in
      peer.outgoing?.statistics.layer = newest
      peer.outgoing?.statistics.why = reason
    }
    out.append(
      .event(
        .layer(link.peer, .sent, from: layer(from), to: layer(to), why: reason), in: link.channel))
  }
}
