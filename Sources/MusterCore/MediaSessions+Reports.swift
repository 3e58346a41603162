import MusterBase
import MusterCongestion
import MusterMedia
import MusterWire

/// The RTCP packets in both directions, and the statistics of the media.
extension MediaSessions {
  static func rtcp(_ packets: [RTCPPacket], over link: LinkID) -> Output {
    .send(OutgoingPayload(RTCPPacket.encode(packets)), over: link)
  }

  /// Handles a compound RTCP packet from a peer; `wait` is the time that video would now wait for
  /// its turn on the path to it.
  mutating func receiveRTCP(
    _ payload: [UInt8], over link: LinkID, wait: Duration, at now: Instant
  ) -> [Output] {
    guard let index = sessions.index(of: link), sessions[at: index].call != nil,
      let packets = try? RTCPPacket.decode(payload)
    else { return [] }
    var out: [Output] = []
    var receptions: [Reception] = []
    for packet in packets {
      switch packet {
      case .senderReport(let report):
        receive(report, fromSessionAt: index, at: now)
        receptions += receive(report.reports, fromSessionAt: index, at: now)
      case .receiverReport(_, let blocks):
        receptions += receive(blocks, fromSessionAt: index, at: now)
      case .nack(_, let media, let sequences):
        out += retransmit(sequences, of: media, toSessionAt: index, at: now)
      case .pictureLoss(_, let media):
        let roundTrip = sessions[at: index].roundTrip ?? Self.defaultRoundTrip
        guard let (stream, layer) = sessions[at: index].call?.outgoing.ssrcs.video(of: media),
          sessions[at: index].call?.outgoing.update(
            stream,
            {
              $0.admitsKeyframeRequest(layer: layer, wait: wait, roundTrip: roundTrip, at: now)
            }) ?? false
        else { continue }
        provideKeyframe(
          of: stream, layer: layer, toSessionAt: index, wait: wait, at: now, &out)
      }
    }
    if let sent = sessions[at: index].call?.outgoing.bytes,
      sessions[at: index].call?.reportedLoss != nil
    {
      let roundTrip = sessions[at: index].roundTrip
      sessions[at: index].call?.reportedLoss?.reported(
        receptions, bytes: sent, roundTrip: roundTrip, at: now)
      out += followReportedLoss(ofSessionAt: index, at: now)
    }
    return out
  }

  /// Lets the receiver reports of a peer limit its video, if it gives no congestion feedback.
  mutating func set(givesFeedback: Bool, _ link: LinkID, at now: Instant) {
    _ = sessions.update(link) { session in
      let former = session.call?.reportedLoss
      session.call?.reportedLoss = givesFeedback ? nil : former ?? ReportedLoss(at: now)
    }
  }

  /// Selects the layers anew if the reports of a peer now allow it another rate.
  private mutating func followReportedLoss(ofSessionAt index: Int, at now: Instant) -> [Output] {
    guard let limit = sessions[at: index].call?.reportedLoss?.limit,
      set(pathBandwidth: Int(limit.kbps), of: sessions.keys[index])
    else { return [] }
    return selectLayers(at: now)
  }

  private mutating func receive(
    _ report: SenderReport, fromSessionAt index: Int, at now: Instant
  ) {
    if sessions[at: index].call?.incomingAudio?.ssrc == report.ssrc {
      sessions[at: index].call?.incomingAudio?.receive(report, at: now)
    } else {
      sessions[at: index].call?.incoming.receive(report, at: now)
    }
  }

  private mutating func receive(
    _ blocks: [ReportBlock], fromSessionAt index: Int, at now: Instant
  ) -> [Reception] {
    // The field LSR of a block (RFC 3550 section 6.4.1) echoes the NTP time of this node's last
    // sender report, which is in media time.
    let now = local.mediaTime(now)
    return blocks.compactMap { block in
      // Each sender ignores blocks of other SSRCs.
      let audio = sessions[at: index].call?.outgoingAudio.receive(block, at: now)
      let video = sessions[at: index].call?.outgoing.receive(block, at: now)
      return ((audio ?? nil) ?? (video ?? nil)).map {
        Reception(expected: $0.expected, lost: $0.lost)
      }
    }
  }

  private mutating func retransmit(
    _ sequences: [UInt16], of ssrc: UInt32, toSessionAt index: Int, at now: Instant
  ) -> [Output] {
    let roundTrip = sessions[at: index].roundTrip ?? Self.defaultRoundTrip
    let link = sessions.keys[index]
    if ssrc == sessions[at: index].call?.outgoingAudio.rtp.ssrc {
      let packets =
        sessions.update(at: index) { session in
          session.call?.retransmitAudio(sequences, roundTrip: roundTrip, at: now)
        } ?? []
      return packets.map { .send($0, over: link) }
    }
    guard let (stream, layer) = sessions[at: index].call?.outgoing.ssrcs.video(of: ssrc) else {
      return []
    }
    let packets =
      sessions[at: index].call?.outgoing.update(stream) {
        $0.retransmissions(of: sequences, layer: layer, roundTrip: roundTrip, at: now)
      } ?? []
    return packets.map { Self.retransmission($0.header, $0.payload, over: link) }
  }

  /// Sends the RTCP reports, NACKs and PLIs that are due for one peer, and reconsiders the layers.
  mutating func tick(sessionAt index: Int, at now: Instant, _ out: inout [Output]) {
    for (stream, output) in sessions[at: index].call?.incoming.tick(at: now) ?? [] {
      out += perform([output], of: stream, ofSessionAt: index, at: now)
    }
    requestMissingAudio(ofSessionAt: index, at: now, &out)
    if let due = sessions[at: index].call?.nextSenderReport, due <= now {
      sessions[at: index].call?.nextSenderReport = now + reportInterval
      sendReports(toSessionAt: index, at: now, &out)
      noteSilence(ofSessionAt: index, at: now)
      // A stream may rise again some time after its bandwidth did.
      out += selectLayers(at: now)
    }
    if let due = sessions[at: index].call?.nextReceiverReport, due <= now {
      sessions[at: index].call?.nextReceiverReport = now + reportInterval
      reportReception(toSessionAt: index, at: now, &out)
    }
  }

  /// Ends the video to a peer from which no receiver reports come; `selectLayers` follows.
  private mutating func noteSilence(ofSessionAt index: Int, at now: Instant) {
    sessions.update(at: index) { session in
      guard let outgoing = session.call?.outgoing else { return }
      let isSending = outgoing.ids.contains { outgoing.layers(of: $0).current != nil }
      session.call?.reportedLoss?.waited(isSending: isSending, at: now)
      guard let limit = session.call?.reportedLoss?.limit else { return }
      session.pathBandwidth = Int(limit.kbps)
    }
  }

  private mutating func requestMissingAudio(
    ofSessionAt index: Int, at now: Instant, _ out: inout [Output]
  ) {
    let roundTrip = sessions[at: index].roundTrip ?? Self.defaultRoundTrip
    let request = sessions.update(at: index) { session in
      session.call?.requestMissingAudio(roundTrip: roundTrip, at: now)
    }
    if let request { out.append(Self.rtcp([request], over: sessions.keys[index])) }
  }

  private func sendReports(toSessionAt index: Int, at now: Instant, _ out: inout [Output]) {
    guard let call = sessions[at: index].call else { return }
    let now = local.mediaTime(now)
    var reports: [RTCPPacket] = []
    if local.sendsAudio, call.outgoingRights.audio {
      let timestamp = local.audioTimestamps.timestamp(at: now)
      reports.append(.senderReport(call.outgoingAudio.rtp.report(at: now, timestamp: timestamp)))
    }
    reports += call.outgoing.reports(at: now).map { .senderReport($0) }
    if !reports.isEmpty { out.append(Self.rtcp(reports, over: sessions.keys[index])) }
  }

  private mutating func reportReception(
    toSessionAt index: Int, at now: Instant, _ out: inout [Output]
  ) {
    var blocks = sessions[at: index].call?.incoming.reportBlocks(at: now) ?? []
    if let block = sessions[at: index].call?.incomingAudio?.reportBlock(at: now) {
      blocks.append(block)
    }
    guard !blocks.isEmpty, let own = sessions[at: index].call?.outgoing.ssrcs.base else { return }
    out.append(
      Self.rtcp([.receiverReport(ssrc: own, reports: blocks)], over: sessions.keys[index]))
  }

  // MARK: Statistics

  /// The totals of the media of a link, and the loss of the sent media; nil without media.
  func statistics(of link: LinkID, at now: Instant) -> LinkStatistics? {
    guard let index = sessions.index(of: link), let call = sessions[at: index].call else {
      return nil
    }
    let streams = StreamID.all.compactMap { stream -> StreamStatistics? in
      let sent = call.outgoing[stream].map { sentStatistics($0) }
      let received = call.incoming[stream].map { receivedStatistics($0, at: now) }
      guard stream == .camera || sent != nil || received != nil else { return nil }
      return StreamStatistics(stream: stream, sent: sent, received: received)
    }
    var camera = streams[0]
    let offersCamera = !local.streams.layers(of: .camera).isEmpty
    camera.sent =
      camera.sent ?? .none(for: call.outgoingRights[.camera], isOffered: offersCamera)
    camera.sent?.bytes &+= call.audioBytesSent
    camera.sent?.audioPackets = call.audioPacketsSent
    camera.received =
      camera.received
      ?? .none(for: call.incomingRights[.camera], isOffered: call.offer(of: .camera) != nil)
    camera.received?.bytes &+= call.audioBytesReceived
    camera.received?.audioPackets = call.audioPacketsReceived
    let loss = call.outgoing.ids.compactMap { call.outgoing[$0]?.lossPercent }.first
    return LinkStatistics(
      camera: camera, others: Array(streams.dropFirst()),
      lossPercent: loss ?? call.outgoingAudio.rtp.lossPercent)
  }

  private func sentStatistics(_ stream: OutgoingStream) -> MediaStatistics {
    var result = MediaStatistics()
    result.layer = stream.sent.layer
    result.bytes = stream.bytes
    result.frames = stream.frames
    result.why = stream.why
    return result
  }

  private func receivedStatistics(
    _ stream: IncomingStream, at now: Instant
  ) -> MediaStatistics {
    let video = stream.receiver.statistics(at: now)
    return MediaStatistics(
      layer: stream.layer, bytes: video.bytes, frames: video.frames,
      framesLost: video.framesLost, freezes: video.freezes,
      totalFreezesDuration: video.totalFreezesDuration,
      why: stream.why)
  }

  /// The statistics of one link's media.
  struct LinkStatistics {
    /// The camera stream, including the audio.
    var camera: StreamStatistics
    var others: [StreamStatistics]
    /// The loss of the media that this node sends, in percent, from the peer's report blocks.
    var lossPercent: Double
  }
}

extension MediaStatistics {
  /// The statistics of a stream of which nothing was sent, perhaps because it must not be.
  fileprivate static func none(for prevented: LayerReason?, isOffered: Bool) -> MediaStatistics {
    MediaStatistics(why: prevented ?? (isOffered ? .started : .source))
  }
}
