import MusterBase
import MusterMedia
import MusterWire

/// The reception of media from peers.
extension MediaSessions {
  /// Handles an RTP packet from a participant; drops media that the participant's role does not
  /// allow.
  mutating func receiveRTP(
    _ payload: [UInt8], over link: LinkID, at now: Instant
  ) -> [Output] {
    guard let index = sessions.index(of: link), let packet = try? RTPPacket(decoding: payload)
    else { return [] }
    if PayloadType.isAudio(packet.header.payloadType) {
      var out: [Output] = []
      sessions.update(at: index) { session in
        let roundTrip = session.roundTrip ?? Self.defaultRoundTrip
        session.call?.receiveAudio(packet, roundTrip: roundTrip, at: now) {
          out.append(.host(.play($0, from: link)))
        }
      }
      if !out.isEmpty { noteLevel(of: packet.header, from: link, at: now, &out) }
      return out
    }
    guard let stream = PayloadType.video(of: packet.header.payloadType)?.stream else { return [] }
    let outputs = sessions.update(at: index) { session in
      session.call?.receiveVideo(packet, of: stream, at: now) ?? []
    }
    return outputs.isEmpty ? [] : perform(outputs, of: stream, ofSessionAt: index, at: now)
  }

  /// Executes the outputs of a stream's receiver.
  func perform(
    _ outputs: [VideoReceiver.Output], of stream: StreamID, ofSessionAt index: Int
  ) -> [Output] {
    let own = sessions[at: index].call?.outgoing.ssrcs.base ?? 0
    let link = sessions.keys[index]
    return outputs.compactMap { output in
      switch output {
      case .frame: nil
      case .nack(let ssrc, let sequences):
        Self.rtcp([.nack(sender: own, media: ssrc, sequences: sequences)], over: link)
      case .requestKeyframe(let ssrc):
        Self.rtcp([.pictureLoss(sender: own, media: ssrc)], over: link)
      }
    }
  }

  mutating func perform(
    _ outputs: [VideoReceiver.Output], of stream: StreamID, ofSessionAt index: Int,
    at now: Instant
  ) -> [Output] {
    var out: [Output] = []
    out.reserveCapacity(outputs.count + 1)
    for output in outputs {
      if case .frame(let frame) = output {
        show(frame, of: stream, ofSessionAt: index, at: now, &out)
      } else {
        out += perform([output], of: stream, ofSessionAt: index)
      }
    }
    return out
  }

  private mutating func show(
    _ frame: ReceivedFrame, of stream: StreamID, ofSessionAt index: Int, at now: Instant,
    _ out: inout [Output]
  ) {
    let link = sessions.keys[index]
    let showing = sessions.update(at: index) { $0.call?.incoming.show(frame, of: stream) ?? nil }
    guard let showing else { return }
    if showing.isFirst {
      let after = now - sessions[at: index].upSince
      let event = NodeEvent.firstFrame(link.peer, stream, after: after, size: frame.size)
      out.append(.host(.event(event, in: link.channel)))
    }
    if let change = showing.change {
      out.append(Self.event(change, .received, of: stream, link))
    }
    out.append(.host(.show(frame, from: link, stream: stream)))
  }

  /// Applies the peer's rights and stream offers and this node's requests to the receivers.
  mutating func expectStreams(ofSessionAt index: Int, at now: Instant) -> [Output] {
    guard var call = sessions[at: index].call else { return [] }
    let link = sessions.keys[index]
    var out: [Output] = []
    for stream in StreamID.all {
      let (change, hasEnded) = call.incoming.expect(
        stream, call.offer(of: stream), call.wanted[stream.index],
        isAllowed: call.incomingRights[stream] == nil, at: now)
      if let change { out.append(Self.event(change, .received, of: stream, link)) }
      if hasEnded { out.append(.host(.mediaEnded(link, stream: stream))) }
    }
    sessions[at: index].call = call
    return out
  }

  /// Handles what the peer says that it sends of a stream.
  mutating func receive(_ sent: SentLayer, from link: LinkID, at now: Instant) -> [Output] {
    let stream = sent.stream.index
    guard let index = sessions.index(of: link) else { return [] }
    // The peer repeats what it sends, so a change beyond the limit is only delayed. A repetition is
    // no change, but the stream may have forgotten the first one (`IncomingStreams.expect`).
    let isAccepted = sessions.update(at: index) { session in
      session.sentLayers[stream] == sent || session.sentLayerBudgets[stream].take(at: now)
    }
    guard isAccepted else { return [] }
    sessions[at: index].sentLayers[stream] = sent
    let change = sessions[at: index].call?.incoming.receive(sent, at: now) ?? nil
    return change.map { [Self.event($0, .received, of: sent.stream, link)] } ?? []
  }

  // MARK: Reports from the sinks

  /// Requests a keyframe of a stream because a sink could not decode a frame or was newly opened.
  mutating func requestKeyframe(
    of stream: StreamID, from link: LinkID, at now: Instant
  ) -> [Output] {
    guard let index = sessions.index(of: link) else { return [] }
    let outputs = sessions[at: index].call?.incoming.requestKeyframe(of: stream, at: now) ?? []
    return perform(outputs, of: stream, ofSessionAt: index, at: now)
  }

  /// Records that audio with this RTP timestamp is played at `playedAt`, for lip sync.
  mutating func noteAudioPlayout(of link: LinkID, timestamp: UInt32, playedAt: Instant) {
    guard let index = sessions.index(of: link),
      let capturedAt = sessions[at: index].call?.incomingAudio?.clock.captureTime(
        of: timestamp, clockRate: RTPTime.audioClockRate)
    else { return }
    sessions[at: index].call?.incoming.setAudioDelay(playedAt - capturedAt)
  }
}
