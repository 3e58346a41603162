import MusterBase
import MusterMedia
import MusterWire

/// The sending of this node's media to every receiver.
extension MediaSessions {
  /// Sends one encoded frame to all receivers of its layer; the frame is packetised only once.
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
      let current = sessions.read(at: index) { $0.call?.outgoing.layers(of: stream).current }
      guard current == frame.layer else { continue }
      send(packets, of: stream, toSessionAt: index, at: now, &out)
    }
    return out
  }

  /// Switches the receivers that wait for a keyframe of `layer` to that layer.
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
    sessions.update(at: index) { session in
      _ = session.call?.outgoing.update(stream) { stream in
        for (position, payload) in frame.payloads.enumerated() {
          let header = stream.send(payload, of: frame, isLast: position == last, at: now)
          out.append(.send(OutgoingPayload(.rtp(header), payload), over: link))
        }
      }
    }
  }

  /// Sends one Opus packet of this node's microphone to every participant of a call in which this
  /// node's role and mute state allow audio.
  mutating func sendAudio(_ audio: EncodedAudio, at now: Instant) -> [Output] {
    guard local.sendsAudio else { return [] }
    let timestamp = local.audioTimestamps.next(capturedAt: local.mediaTime(audio.capturedAt))
    var out: [Output] = []
    out.reserveCapacity(sessions.count)
    for index in 0..<sessions.count {
      let header = sessions.update(at: index) { session in
        session.call?.sendAudio(audio, timestamp: timestamp, at: now)
      }
      guard let header else { continue }
      let payload = OutgoingPayload(.rtp(header), audio.data[...])
      out.append(.send(payload, over: sessions.keys[index]))
    }
    return out
  }

  /// Resends the video packets sent since `start`, which were probably lost on the former path,
  /// without waiting for NACKs.
  mutating func repeatFrames(
    over link: LinkID, since start: Instant, at now: Instant
  ) -> [Output] {
    guard let index = sessions.index(of: link), let ids = sessions[at: index].call?.outgoing.ids
    else { return [] }
    var out: [Output] = []
    for id in ids {
      let packets =
        sessions[at: index].call?.outgoing.update(id) {
          $0.repeats(since: start, at: now)
        } ?? []
      out += packets.map { .send(OutgoingPayload(.rtp($0.header), $0.payload), over: link) }
    }
    return out
  }

  /// The assumed round trip of a link that has not been measured yet.
  static let defaultRoundTrip = Duration.milliseconds(50)
}
