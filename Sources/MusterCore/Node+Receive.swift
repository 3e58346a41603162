import MusterBase
import MusterChannel
import MusterDiscovery
import MusterLink
import MusterMedia
import MusterWire

extension Node {
  mutating func receiveRTP(
    _ payload: [UInt8], over link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    guard let index = peers.index(of: link), peers[at: index].incoming != nil,
      let packet = try? RTPPacket(decoding: payload)
    else { return }
    if packet.header.payloadType == PayloadType.opus {
      guard peers[at: index].incoming?.allowsAudio ?? false else { return }
      receiveAudio(packet, fromPeerAt: index, at: now, &out)
    } else {
      guard peers[at: index].incoming?.allowsVideo ?? false else { return }
      let outputs = peers[at: index].incoming?.video.receive(packet, at: now) ?? []
      perform(outputs, ofPeerAt: index, at: now, &out)
    }
  }

  private mutating func receiveAudio(
    _ packet: RTPPacket, fromPeerAt index: Int, at now: Instant, _ out: inout [Output]
  ) {
    let header = packet.header
    guard var incoming = peers[at: index].incoming else { return }
    var stream =
      incoming.audio.flatMap { $0.ssrc == header.ssrc ? $0 : nil }
      ?? IncomingMedia.AudioStream(
        ssrc: header.ssrc,
        statistics: RTPReceiverStatistics(clockRate: 48_000))
    stream.statistics.receive(
      sequence: header.sequence, timestamp: header.timestamp, at: now)
    incoming.audio = stream
    incoming.audioPackets &+= 1
    incoming.audioBytes &+= UInt64(packet.payload.count)
    peers[at: index].incoming = incoming
    out.append(
      .play(
        ReceivedAudio(
          sequence: header.sequence, timestamp: header.timestamp, level: header.audioLevel,
          payload: Array(packet.payload),
          capturedAt: stream.clock.captureTime(of: header.timestamp, clockRate: 48_000)),
        from: peers.keys[index]))
  }

  /// Carries out what a video receiver asks for.
  private mutating func perform(
    _ outputs: [VideoReceiver.Output], ofPeerAt index: Int, at now: Instant,
    _ out: inout [Output]
  ) {
    let link = peers.keys[index]
    for output in outputs {
      switch output {
      case .frame(let frame): show(frame, ofPeerAt: index, at: now, &out)
      case .nack(let ssrc, let sequences):
        sendRTCP(
          [.nack(sender: ownSSRC(index), media: ssrc, sequences: sequences)], over: link,
          at: now, &out)
      case .requestKeyframe(let ssrc):
        sendRTCP(
          [.pictureLoss(sender: ownSSRC(index), media: ssrc)], over: link, at: now, &out)
      }
    }
  }

  private mutating func show(
    _ frame: ReceivedFrame, ofPeerAt index: Int, at now: Instant, _ out: inout [Output]
  ) {
    guard var incoming = peers[at: index].incoming else { return }
    let link = peers.keys[index]
    let offered = channels[link.channel]?.state.member(link.peer)?.layers ?? []
    let rate = offered.first { $0.size == frame.size }?.framesPerSecond ?? 0
    let layer = VideoLayer(size: frame.size, framesPerSecond: rate)
    if !incoming.showsVideo {
      incoming.showsVideo = true
      out.append(
        .event(
          .firstFrame(link.peer, after: now - peers[at: index].upSince, size: frame.size),
          in: link.channel))
    }
    if layer.size != incoming.layer?.size {
      let why: LayerReason = incoming.layer == nil ? .started : .requested
      out.append(
        .event(
          .layer(link.peer, .received, from: incoming.layer, to: layer, why: why),
          in: link.channel))
      incoming.layer = layer
    }
    var delay = Duration.zero
    if let capturedAt = frame.capturedAt {
      delay = incoming.lipSync.videoDelay(
        audioDelay: incoming.audioDelay, videoDelay: now - capturedAt, at: now)
    }
    peers[at: index].incoming = incoming
    out.append(.show(frame, from: link, delay: delay))
  }

  mutating func receiveRTCP(
    _ payload: [UInt8], over link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    guard let index = peers.index(of: link), let packets = try? RTCPPacket.decode(payload) else {
      return
    }
    for packet in packets {
      switch packet {
      case .senderReport(let report):
        receive(report, fromPeerAt: index, at: now)
        receive(report.reports, fromPeerAt: index, at: now)
      case .receiverReport(_, let blocks): receive(blocks, fromPeerAt: index, at: now)
      case .nack(_, let media, let sequences):
        retransmit(sequences, of: media, toPeerAt: index, at: now, &out)
      case .pictureLoss(_, let media):
        guard let layer = peers[at: index].outgoing?.layer(of: media),
          peers[at: index].outgoing?.layer == layer,
          peers[at: index].outgoing?.keyframeRequests.take(at: now) ?? false
        else { continue }
        requestKeyframe(layer: layer, at: now, &out)
      }
    }
  }

  private mutating func receive(
    _ report: SenderReport, fromPeerAt index: Int, at now: Instant
  ) {
    if peers[at: index].incoming?.audio?.ssrc == report.ssrc {
      peers[at: index].incoming?.audio?.clock.update(report)
      peers[at: index].incoming?.audio?.statistics.receive(report, at: now)
    } else {
      peers[at: index].incoming?.video.receive(report, at: now)
    }
  }

  private mutating func receive(
    _ blocks: [ReportBlock], fromPeerAt index: Int, at now: Instant
  ) {
    for block in blocks {
      if block.ssrc == peers[at: index].outgoing?.ssrcBase {
        peers[at: index].outgoing?.audio.receive(block, at: now)
      } else if let layer = peers[at: index].outgoing?.layer(of: block.ssrc) {
        peers[at: index].outgoing?.video[layer].receive(block, at: now)
      }
    }
  }

  /// What was sent lately went into the void: the peer need not ask for it.
  mutating func repeatFrames(
    over link: LinkID, since start: Instant, at now: Instant, _ out: inout [Output]
  ) {
    guard let index = peers.index(of: link), let outgoing = peers[at: index].outgoing,
      let layer = outgoing.layer
    else { return }
    let sender = outgoing.video[layer]
    retransmit(
      sender.sequences(since: start), of: sender.ssrc, toPeerAt: index, at: now, &out)
  }

  private mutating func retransmit(
    _ sequences: [UInt16], of ssrc: UInt32, toPeerAt index: Int, at now: Instant,
    _ out: inout [Output]
  ) {
    guard let layer = peers[at: index].outgoing?.layer(of: ssrc) else { return }
    let roundTrip = roundTrip(of: peers.keys[index]) ?? .milliseconds(50)
    let packets =
      peers[at: index].outgoing?.video[layer].retransmissions(
        of: sequences, roundTrip: roundTrip, at: now) ?? []
    for packet in packets {
      send(packet.header.encoded, packet.payload[...], over: peers.keys[index], at: now, &out)
    }
  }

  /// What this node's feedback to a peer is sent under.
  private func ownSSRC(_ index: Int) -> UInt32 { peers[at: index].outgoing?.ssrcBase ?? 0 }

  private mutating func sendRTCP(
    _ packets: [RTCPPacket], over link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    send(RTCPPacket.encode(packets), [], over: link, at: now, &out)
  }

  /// Reports and repeated requests that are due for one peer.
  mutating func tickMedia(of link: LinkID, at now: Instant, _ out: inout [Output]) {
    guard let index = peers.index(of: link) else { return }
    if let due = peers[at: index].incoming?.video.deadline, due <= now {
      let outputs = peers[at: index].incoming?.video.tick(at: now) ?? []
      perform(outputs, ofPeerAt: index, at: now, &out)
    }
    let next = now + configuration.reportInterval
    if let due = peers[at: index].outgoing?.nextReport, due <= now {
      peers[at: index].outgoing?.nextReport = next
      sendReports(toPeerAt: index, at: now, &out)
    }
    if let due = peers[at: index].incoming?.nextReport, due <= now {
      peers[at: index].incoming?.nextReport = next
      var blocks = peers[at: index].incoming?.video.reportBlocks(at: now) ?? []
      if let ssrc = peers[at: index].incoming?.audio?.ssrc,
        let block = peers[at: index].incoming?.audio?.statistics.reportBlock(ssrc: ssrc, at: now)
      {
        blocks.append(block)
      }
      if !blocks.isEmpty {
        let report = RTCPPacket.receiverReport(ssrc: ownSSRC(index), reports: blocks)
        sendRTCP([report], over: link, at: now, &out)
      }
    }
  }

  private mutating func sendReports(
    toPeerAt index: Int, at now: Instant, _ out: inout [Output]
  ) {
    guard let outgoing = peers[at: index].outgoing else { return }
    var reports: [RTCPPacket] = []
    if localMedia.sendsAudio, outgoing.allowsAudio {
      let timestamp = localMedia.audioTimestamps.timestamp(at: now)
      reports.append(.senderReport(outgoing.audio.report(at: now, timestamp: timestamp)))
    }
    if let layer = outgoing.layer ?? outgoing.target {
      let timestamp = RTPTime.timestamp(of: now, clockRate: 90_000)
      reports.append(.senderReport(outgoing.video[layer].report(at: now, timestamp: timestamp)))
    }
    if !reports.isEmpty { sendRTCP(reports, over: peers.keys[index], at: now, &out) }
  }

  // MARK: What the sinks tell

  /// A sink could not decode a member's picture, or opened anew: ask for a keyframe.
  public mutating func requestKeyframe(from link: LinkID, at now: Instant) -> [Output] {
    var out: [Output] = []
    guard let index = peers.index(of: link) else { return out }
    let outputs = peers[at: index].incoming?.video.requestKeyframe(at: now) ?? []
    perform(outputs, ofPeerAt: index, at: now, &out)
    return out
  }

  /// The sound stamped `timestamp` leaves the loudspeaker at `playedAt`: what pictures wait for.
  public mutating func noteAudioPlayout(
    of link: LinkID, timestamp: UInt32, playedAt: Instant
  ) {
    guard let index = peers.index(of: link),
      let capturedAt = peers[at: index].incoming?.audio?.clock.captureTime(
        of: timestamp, clockRate: 48_000)
    else { return }
    peers[at: index].incoming?.audioDelay = playedAt - capturedAt
  }

  /// How every peer is reached and how media fares, in the order of links.
  public func statistics() -> [PeerStatistics] {
    peers.map { link, peer in
      var sent = peer.outgoing?.statistics
      var received: MediaStatistics?
      if let incoming = peer.incoming {
        let video = incoming.video.statistics
        received = MediaStatistics(
          layer: incoming.layer, bytes: video.bytes &+ incoming.audioBytes, frames: video.frames,
          framesLost: video.framesLost, freezes: video.freezes, frozen: video.frozen,
          audioPackets: incoming.audioPackets, why: .started)
      }
      sent?.layer = peer.outgoing?.layer.flatMap {
        localMedia.layers.indices.contains($0) ? localMedia.layers[$0] : nil
      }
      let loss = peer.outgoing.map { media in
        media.layer.map { media.video[$0].lossPercent } ?? media.audio.lossPercent
      }
      return PeerStatistics(
        link: link,
        address: path(of: link)?.route.address, via: relay(of: link),
        roundTrip: roundTrip(of: link),
        lossPercent: loss ?? 0, sent: sent, received: received)
    }
  }
}
