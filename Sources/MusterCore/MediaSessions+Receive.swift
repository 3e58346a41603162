import MusterBase
import MusterMedia
import MusterWire

/// The media of others.
extension MediaSessions {
  /// An RTP packet of a participant; what its role does not allow is dropped unseen.
  mutating func receiveRTP(
    _ payload: [UInt8], over link: LinkID, at now: Instant
  ) -> [Output] {
    guard let index = sessions.index(of: link),
      let rights = sessions[at: index].call?.incomingRights,
      let packet = try? RTPPacket(decoding: payload)
    else { return [] }
    if packet.header.payloadType == PayloadType.opus {
      return rights.audio ? receiveAudio(packet, fromSessionAt: index, at: now) : []
    }
    guard let stream = PayloadType.video(of: packet.header.payloadType)?.stream,
      rights[stream] == nil
    else { return [] }
    let outputs = sessions[at: index].call?.incoming.receive(packet, of: stream, at: now) ?? []
    return outputs.isEmpty ? [] : perform(outputs, of: stream, ofSessionAt: index, at: now)
  }

  private mutating func receiveAudio(
    _ packet: RTPPacket, fromSessionAt index: Int, at now: Instant
  ) -> [Output] {
    let header = packet.header
    if sessions[at: index].call?.incomingAudio?.ssrc != header.ssrc {
      sessions[at: index].call?.incomingAudio = IncomingAudio(ssrc: header.ssrc)
    }
    sessions[at: index].call?.incomingAudio?.receive(header, at: now)
    sessions[at: index].call?.audioPacketsReceived &+= 1
    sessions[at: index].call?.audioBytesReceived &+= UInt64(packet.payload.count)
    let capturedAt = sessions[at: index].call?.incomingAudio?.clock.captureTime(
      of: header.timestamp, clockRate: RTPTime.audioClockRate)
    let audio = ReceivedAudio(
      sequence: header.sequence, timestamp: header.timestamp, level: header.audioLevel,
      payload: Array(packet.payload), capturedAt: capturedAt)
    return [.host(.play(audio, from: sessions.keys[index]))]
  }

  /// Carries out what the receiver of a stream asks for.
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
    let audioDelay = sessions[at: index].call?.audioDelay
    let showing = sessions[at: index].call?.incoming.show(
      frame, of: stream, audioDelay: audioDelay, at: now)
    guard let showing else { return }
    if showing.isFirst {
      let after = now - sessions[at: index].upSince
      let event = NodeEvent.firstFrame(link.peer, stream, after: after, size: frame.size)
      out.append(.host(.event(event, in: link.channel)))
    }
    if let change = showing.change {
      out.append(Self.event(change, .received, of: stream, link))
    }
    out.append(.host(.show(frame, from: link, stream: stream, delay: showing.delay)))
  }

  /// Applies rights, requests and announcements to the streams of a sender.
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

  // MARK: What the sinks report

  /// A sink could not decode a member's frame, or opened anew: asks for a keyframe of a stream.
  mutating func requestKeyframe(
    of stream: StreamID, from link: LinkID, at now: Instant
  ) -> [Output] {
    guard let index = sessions.index(of: link) else { return [] }
    let outputs = sessions[at: index].call?.incoming.requestKeyframe(of: stream, at: now) ?? []
    return perform(outputs, of: stream, ofSessionAt: index, at: now)
  }

  /// The audio stamped `timestamp` leaves the loudspeaker at `playedAt`: what frames wait for.
  mutating func noteAudioPlayout(of link: LinkID, timestamp: UInt32, playedAt: Instant) {
    guard let index = sessions.index(of: link),
      let capturedAt = sessions[at: index].call?.incomingAudio?.clock.captureTime(
        of: timestamp, clockRate: RTPTime.audioClockRate)
    else { return }
    sessions[at: index].call?.audioDelay = playedAt - capturedAt
  }
}
