import MusterBase
import MusterCongestion
import MusterMedia
import MusterWire

/// The sending of this node's media to every receiver.
extension MediaSessions {
  /// Sends one encoded frame to the receivers of its layer; the frame is packetised only once.
  /// `waits` are the times that a frame sent now would wait on the path of each session; where the
  /// time is too long, the frame is left out.
  mutating func sendVideo(
    _ frame: EncodedFrame, of stream: StreamID, waits: [Duration], at now: Instant
  ) -> [Output] {
    var stamped = frame
    stamped.capturedAt = local.mediaTime(frame.capturedAt)
    guard let packets = local.streams.packetize(stamped, of: stream) else { return [] }
    var out: [Output] = []
    out.reserveCapacity(packets.payloads.count * sessions.count)
    if frame.isKeyframe {
      local.streams.keyframeSent(of: stream, layer: frame.layer, at: now)
      for index in 0..<sessions.count {
        switchLayer(of: stream, to: frame.layer, forSessionAt: index, wait: waits[index], &out)
      }
      out += selectLayers(at: now)
    }
    for index in 0..<sessions.count {
      let current = sessions.read(at: index) { $0.call?.outgoing.layers(of: stream).current }
      guard current == frame.layer else { continue }
      send(packets, of: stream, toSessionAt: index, wait: waits[index], at: now, &out)
    }
    local.streams.cache(packets, of: stream, at: now)
    for index in 0..<sessions.count {
      provideOwedKeyframe(of: stream, toSessionAt: index, wait: waits[index], at: now, &out)
    }
    return out
  }

  /// Switches a receiver that waits for a keyframe of `layer` to that layer.
  private mutating func switchLayer(
    of stream: StreamID, to layer: Int, forSessionAt index: Int, wait: Duration,
    _ out: inout [Output]
  ) {
    let change =
      sessions[at: index].call?.outgoing.update(stream) {
        $0.switchLayer(to: layer, wait: wait)
      } ?? nil
    if let change { out.append(Self.event(change, .sent, of: stream, sessions.keys[index])) }
    notify(of: stream, sessionAt: index, &out)
  }

  private mutating func send(
    _ frame: PacketizedFrame, of stream: StreamID, toSessionAt index: Int, wait: Duration,
    at now: Instant, _ out: inout [Output]
  ) {
    let link = sessions.keys[index]
    let last = frame.payloads.count - 1
    sessions.update(at: index) { session in
      _ = session.call?.outgoing.update(stream) { stream in
        guard stream.admits(frame, wait: wait, at: now) else { return }
        for (position, payload) in frame.payloads.enumerated() {
          let header = stream.send(payload, of: frame, isLast: position == last, at: now)
          let packet = QueuedPacket(OutgoingPayload(.rtp(header), payload), over: link)
          out.append(.queue(packet, .video))
        }
      }
    }
  }

  // MARK: Keyframes and what replaces them

  /// Provides a receiver to whom frames were left out, or who changes its layer, with a keyframe
  /// once its path has room.
  private mutating func provideOwedKeyframe(
    of stream: StreamID, toSessionAt index: Int, wait: Duration, at now: Instant,
    _ out: inout [Output]
  ) {
    let isOwed = sessions.read(at: index) { $0.call?.outgoing.owesKeyframe(of: stream) ?? false }
    guard isOwed else { return }
    let layer =
      sessions[at: index].call?.outgoing.update(stream) {
        $0.dueKeyframe(wait: wait, at: now)
      } ?? nil
    if let layer {
      provideKeyframe(of: stream, layer: layer, toSessionAt: index, wait: wait, at: now, &out)
    }
  }

  /// Sends a receiver the frames since the last keyframe of a layer, or requests a keyframe.
  mutating func provideKeyframe(
    of stream: StreamID, layer: Int, toSessionAt index: Int, wait: Duration, at now: Instant,
    _ out: inout [Output]
  ) {
    guard let cached = cachedFrames(of: stream, layer: layer, forSessionAt: index, at: now),
      wait + duration(of: cached.bytes, toSessionAt: index) <= FrameCache.longestWait
    else { return requestKeyframe(of: stream, layer: layer, forSessionAt: index, at: now, &out) }
    switchLayer(of: stream, to: layer, forSessionAt: index, wait: wait, &out)
    for frame in cached.frames {
      send(frame, of: stream, toSessionAt: index, wait: wait, at: now, &out)
    }
    _ = sessions[at: index].call?.outgoing.update(stream) {
      $0.caughtUp(fromKeyframeOf: cached.keyframeCapturedAt)
    }
  }

  /// The frames since the last keyframe of a layer, with which a receiver is to begin. Nil where no
  /// other receiver gets the layer: a keyframe then costs nobody anything, and is shorter.
  func cachedFrames(
    of stream: StreamID, layer: Int, forSessionAt index: Int, at now: Instant
  ) -> FrameCache.Content? {
    guard isShared(layer, of: stream, bySessionAt: index),
      let cached = local.streams.cachedFrames(of: stream, layer: layer, at: now),
      sessions[at: index].call?.outgoing[stream]?.mayCatchUp(
        fromKeyframeOf: cached.keyframeCapturedAt) ?? false
    else { return nil }
    return cached
  }

  /// Whether receivers other than one get a layer.
  private func isShared(_ layer: Int, of stream: StreamID, bySessionAt index: Int) -> Bool {
    (0..<sessions.count).contains { other in
      other != index
        && sessions.read(at: other) { $0.call?.outgoing.layers(of: stream).current } == layer
    }
  }

  /// The time that the path to a receiver takes for this many bytes.
  private func duration(of bytes: Int, toSessionAt index: Int) -> Duration {
    guard let bandwidth = sessions.read(at: index, { $0.bandwidth }) else { return .zero }
    return .microseconds(bytes * 8000 / max(bandwidth, 1))
  }

  /// Requests a keyframe of a layer for a receiver.
  mutating func requestKeyframe(
    of stream: StreamID, layer: Int, forSessionAt index: Int, at now: Instant,
    _ out: inout [Output]
  ) {
    let isGranted = local.streams.requestKeyframe(
      of: stream, layer: layer, isShared: isShared(layer, of: stream, bySessionAt: index),
      at: now)
    if isGranted { out.append(.host(.encodeKeyframe(stream, layer: layer))) }
  }

  /// Notes that a packet was not sent in time; until the next keyframe, its receiver gets nothing
  /// that could refer to it.
  mutating func expired(_ packet: QueuedPacket) {
    guard case .rtp(let header) = packet.payload.header else { return }
    _ = sessions.update(packet.link) { session in
      guard let (stream, layer) = session.call?.outgoing.ssrcs.video(of: header.ssrc) else {
        return
      }
      _ = session.call?.outgoing.update(stream) {
        $0.expired(header.sequence, layer: layer)
      }
    }
  }

  /// Adapts the audio that a session sends next to the conditions of its path.
  mutating func adaptAudio(
    to conditions: AudioSender.Conditions, forSessionAt index: Int, at now: Instant
  ) {
    guard local.sendsAudio else { return }
    sessions.update(at: index) { $0.call?.outgoingAudio.adapt(to: conditions, at: now) }
  }

  /// Sends one frame of this node's microphone to every participant of a call in which this node's
  /// role and mute state allow audio.
  mutating func sendAudio(_ audio: EncodedAudio, at now: Instant) -> [Output] {
    guard local.sendsAudio else { return [] }
    let timestamp = local.audioTimestamps.next(capturedAt: local.mediaTime(audio.capturedAt))
    var out: [Output] = []
    out.reserveCapacity(sessions.count)
    for index in 0..<sessions.count {
      let payload = sessions.update(at: index) {
        $0.call?.sendAudio(audio, timestamp: timestamp, at: now)
      }
      if let payload { out.append(.send(payload, over: sessions.keys[index])) }
    }
    noteOwnLevel(audio.level, timestamp: timestamp, at: now, &out)
    updateLongPackets(&out)
    return out
  }

  private mutating func updateLongPackets(_ out: inout [Output]) {
    let areNeeded = (0..<sessions.count).contains { index in
      sessions.read(at: index) { $0.call?.outgoingAudio.needsLongPackets ?? false }
    }
    guard areNeeded != local.encodesLongPackets else { return }
    local.encodesLongPackets = areNeeded
    out.append(.host(.encodeLongPackets(areNeeded)))
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
      out += packets.map { Self.retransmission($0.header, $0.payload, over: link) }
    }
    return out
  }

  static func retransmission(
    _ header: RTPHeader, _ payload: ArraySlice<UInt8>, over link: LinkID
  ) -> Output {
    .queue(QueuedPacket(OutgoingPayload(.rtp(header), payload), over: link), .retransmission)
  }

  /// The assumed round trip of a link that has not been measured yet.
  static let defaultRoundTrip = Duration.milliseconds(50)
}
