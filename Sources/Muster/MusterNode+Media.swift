import MusterBase
import MusterChannel
import MusterCore
import MusterMedia
import MusterPipeline
import MusterWire
import NIOCore

/// One frame for a page, still VP8 as it was received.
public struct ViewedFrame: Sendable {
  /// The channel whose call the frame belongs to; nil for this node's own preview.
  public var channel: String?
  /// Nil for this node's own preview.
  public var member: NodeID?
  /// Which of the member's video streams it belongs to.
  public var stream: StreamID
  /// Whether the frame can be decoded without others.
  public var isKeyframe: Bool
  /// 0 for the base layer.
  public var temporalLayer: Int
  /// VP8, one frame.
  public var data: [UInt8]
  /// When it was captured or received, by this node's boot clock.
  public var at: Instant
}

extension MusterNode {
  /// Hands every frame that is due for display to `sink`, which is called on the node's event loop
  /// and must return quickly, and requests keyframes of all members; nil stops it.
  public func showFrames(_ sink: (@Sendable (ViewedFrame) -> Void)?) {
    frameSink = sink
    showsPreview = sink != nil
    updateEncoders()
    guard sink != nil else { return }
    for peer in node.statistics() where peer.received != nil {
      for stream in StreamID.all {
        perform(node.requestKeyframe(of: stream, from: peer.link, at: now))
      }
    }
    media.video(.camera)?.requestKeyframe(layer: 0)
  }

  func startMedia() {
    media.start(
      video: { [weak self] frame, stream in self?.handOver(frame, of: stream) },
      audio: { [weak self] audio in self?.onLoop { $0.encoded(audio) } },
      playout: { [weak self] reports in self?.onLoop { $0.played(reports) } },
      failed: { [weak self] error in self?.onLoop { $0.emit(.warning(error)) } })
  }

  /// An event loop that falls behind must not collect frames without bound: non-reference frames
  /// are dropped first, then everything up to the next keyframe, which is requested.
  private nonisolated func handOver(_ frame: EncodedFrame, of stream: StreamID) {
    guard let video = media.video(stream) else { return }
    guard video.backlog.admits(frame) else {
      if frame.isReference { video.requestKeyframe(layer: frame.layer) }
      return
    }
    onLoop {
      video.backlog.taken()
      $0.encoded(frame, of: stream)
    }
  }

  private nonisolated func onLoop(_ body: @escaping @Sendable (isolated MusterNode) -> Void) {
    loop.execute { self.assumeIsolated { body($0) } }
  }

  private func encoded(_ frame: EncodedFrame, of stream: StreamID) {
    if wantedLayers[stream.index].contains(frame.layer) {
      perform(node.sendVideo(frame, of: stream, at: now))
    }
    if showsPreview, stream == .camera, frame.layer == 0, let frameSink {
      frameSink(
        ViewedFrame(
          channel: nil, member: nil, stream: stream, isKeyframe: frame.isKeyframe,
          temporalLayer: frame.temporalLayer, data: frame.data, at: frame.capturedAt))
    }
  }

  private func encoded(_ audio: EncodedAudio) { perform(node.sendAudio(audio, at: now)) }

  private func played(_ reports: [AudioPlayout.Report]) {
    for report in reports {
      node.noteAudioPlayout(
        of: report.link, timestamp: report.timestamp, playedAt: report.playedAt)
      meters.audioLost[report.link] = report.lostPercent
      meters.audio[report.link] = report.statistics
    }
  }

  /// Sets what the encoders have to do: what members need, and this node's own preview. The
  /// microphone is open during calls only.
  func updateEncoders() {
    let isInCall = node.channelIDs.contains { node.isInCall($0) }
    let isMuted = node.channelIDs.contains {
      node.ownMember(in: $0)?.flags.contains(.videoMuted) ?? false
    }
    for video in media.videos {
      var layers = wantedLayers[video.offer.id.index]
      let isPreviewed = video.offer.id == .camera && showsPreview && isInCall && !isMuted
      if isPreviewed, !layers.contains(0) { layers.insert(0, at: 0) }
      video.encode(layers: layers)
    }
    media.audio?.setWanted(isInCall)
  }

  func show(_ frame: ReceivedFrame, of stream: MemberStream, after delay: Duration) {
    let link = stream.link
    let offer = offer(of: stream.stream, of: link.peer, in: link.channel)
    let name = offer?.name ?? stream.stream.description
    if let other = media.recorder?.add(frame, of: stream, name: name) {
      onLoop { node in
        node.perform(
          node.node.requestKeyframe(of: other.stream, from: other.link, at: node.now))
      }
    }
    if offer?.isPattern ?? false { media.meter.add(frame, from: stream) }
    guard let frameSink else { return }
    let viewed = ViewedFrame(
      channel: node.name(of: link.channel), member: link.peer, stream: stream.stream,
      isKeyframe: frame.isKeyframe,
      temporalLayer: frame.temporalLayer, data: frame.data, at: frame.completedAt)
    // Never before the one before it, also when the delay has just become shorter.
    let earliest = meters.shownUntil[stream] ?? now
    let due = max(now + delay, earliest + .microseconds(1))
    guard due - now > .milliseconds(1) else { return frameSink(viewed) }
    meters.shownUntil[stream] = due
    loop.scheduleTask(in: .nanoseconds((due - now).wholeNanoseconds)) { frameSink(viewed) }
  }

  /// The announcement of a stream by a member or by this node.
  private func offer(
    of stream: StreamID, of member: NodeID, in channel: ChannelID
  ) -> StreamOffer? {
    if member == id { return media.video(stream)?.offer }
    return node.member(member, of: channel)?.stream(stream)
  }

  /// The name of a stream.
  func name(of stream: StreamID, of member: NodeID, in channel: ChannelID) -> String {
    offer(of: stream, of: member, in: channel)?.name ?? stream.description
  }

  /// Recordings are named after members, by the name they have when their media begins.
  func nameRecording(_ event: NodeEvent, in channel: ChannelID) {
    switch event {
    case .channel(.memberJoined(let member)), .channel(.memberUpdated(let member)):
      media.recorder?.setName(member.name, of: LinkID(channel: channel, peer: member.id))
    default: break
    }
  }

  /// Ends what is kept of a member's stream, or of the member when it is nil.
  func endMedia(of link: LinkID, _ stream: StreamID?) {
    if let stream {
      media.recorder?.end(link, stream)
      media.meter.end(MemberStream(link, stream))
      meters.forget(MemberStream(link, stream))
      return
    }
    // The playout ends the recording, once it has played the last of the member's audio.
    media.playout?.end(link)
    for stream in StreamID.all { media.meter.end(MemberStream(link, stream)) }
    meters.forget(link)
  }
}

extension MusterNode {
  /// Whether this node has a camera, or what stands for one, and a source of audio.
  public func sources() -> (video: Bool, audio: Bool) {
    (media.video(.camera) != nil, media.hasAudioSource)
  }
}
