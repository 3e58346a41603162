import MusterBase
import MusterMedia
import MusterWire

/// This node's own media, on its way to every receiver.
extension MediaSessions {
  /// One encoded frame of one layer: packetised once, then sent to all who get that layer.
  mutating func sendVideo(
    _ frame: EncodedFrame, of stream: StreamID, at now: Instant
  ) -> [Output] {
    var stamped = frame
    stamped.capturedAt = local.mediaTime(frame.capturedAt)
    guard let packets = local.streams.packetize(stamped, of: stream) else { return [] }
    var out: [Output] = []
    out.reserveCapacity(packets.payloads.count * sessions.count)
    if frame.isKeyframe {
      local.streams.keyframeSent(of: stream, layer: frame.layer, at: now)
      switchLayers(of: stream, to: frame.layer, &out)
      out += selectLayers(at: now)
    }
    for index in 0..<sessions.count {
      guard sessions[at: index].call?.outgoing.layers(of: stream).current == frame.layer else {
        continue
      }
      send(packets, of: stream, toSessionAt: index, at: now, &out)
    }
    return out
  }

  /// A keyframe of `layer` is at hand: those who wait for that layer get it from here on.
  private mutating func switchLayers(
    of stream: StreamID, to layer: Int, _ out: inout [Output]
  ) {
    for index in 0..<sessions.count {
      let change =
        sessions[at: index].call?.outgoing.update(stream) { $0.switchLayer(to: layer) } ?? nil
      if let change {
        out.append(Self.event(change, .sent, of: stream, sessions.keys[index]))
      }
    }
  }

  private mutating func send(
    _ frame: PacketizedFrame, of stream: StreamID, toSessionAt index: Int, at now: Instant,
    _ out: inout [Output]
  ) {
    let link = sessions.keys[index]
    let last = frame.payloads.count - 1
    _ = sessions[at: index].call?.outgoing.update(stream) { stream in
      for (position, payload) in frame.payloads.enumerated() {
        let header = stream.send(payload, of: frame, isLast: position == last, at: now)
        out.append(.send(OutgoingPayload(.rtp(header), payload), over: link))
      }
    }
  }

  /// One Opus packet of this node's own microphone, sent to everyone in the call who may get it.
  mutating func sendAudio(_ audio: EncodedAudio, at now: Instant) -> [Output] {
    guard local.sendsAudio else { return [] }
    let timestamp = local.audioTimestamps.next(capturedAt: local.mediaTime(audio.capturedAt))
    var out: [Output] = []
    for index in 0..<sessions.count {
      guard sessions[at: index].call?.outgoingRights.audio ?? false,
        let header = sessions[at: index].call?.outgoingAudio.send(
          audio.data[...], marker: false, timestamp: timestamp, audioLevel: audio.level, at: now)
      else { continue }
      sessions[at: index].call?.audioPacketsSent &+= 1
      sessions[at: index].call?.audioBytesSent &+= UInt64(audio.data.count)
      let payload = OutgoingPayload(.rtp(header), audio.data[...])
      out.append(.send(payload, over: sessions.keys[index]))
    }
    return out
  }

  /// Sends again what was sent from `start` on: it was lost with the path, and the peer need not
  /// ask for it.
  mutating func repeatFrames(
    over link: LinkID, since start: Instant, at now: Instant
  ) -> [Output] {
    guard let index = sessions.index(of: link), let ids = sessions[at: index].call?.outgoing.ids
    else { return [] }
    let roundTrip = sessions[at: index].roundTrip ?? Self.defaultRoundTrip
    var out: [Output] = []
    for id in ids {
      let packets =
        sessions[at: index].call?.outgoing.update(id) {
          $0.repeats(since: start, roundTrip: roundTrip, at: now)
        } ?? []
      out += packets.map { .send(OutgoingPayload(.rtp($0.header), $0.payload), over: link) }
    }
    return out
  }

  /// Before the link has measured its own.
  static let defaultRoundTrip = Duration.milliseconds(50)
}
