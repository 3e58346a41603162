import MusterBase
import MusterChannel
import MusterCore
import MusterMedia
import MusterPipeline
import MusterWire
import NIOCore

/// A VP8 frame for the call page, as encoded by its sender.
public struct ViewedFrame: Sendable {
  /// The channel of the frame's call; nil for this node's own preview.
  public var channel: String?
  /// The member that sent the frame; nil for this node's own preview.
  public var member: NodeID?
  /// The member's video stream; `camera` for the preview.
  public var stream: StreamID
  /// Whether the frame can be decoded by itself.
  public var isKeyframe: Bool
  /// The temporal layer; 0 is the base layer.
  public var temporalLayer: Int
  /// One VP8 frame (RFC 6386).
  public var data: [UInt8]
  /// Whether to show the frame, or only to decode it, because later frames refer to it.
  public var isShown = true
  /// The time of capture (preview) or complete reception, by this node's boot clock.
  public var at: Instant
}

extension MusterNode {
  /// Requests the videos that a viewer shows, in place of those of the last call, and beside what
  /// is recorded; nil if there is no viewer any more. Their frames arrive at the sink of
  /// `showFrames`.
  public func show(_ videos: [ShownVideo]?) {
    showsPreview = false
    let streams = videos?.compactMap { video -> ShownStream? in
      guard case .member(let member, let stream, let name) = video.source else {
        showsPreview = true
        return nil
      }
      guard let channel = try? channel(named: name) else { return nil }
      return ShownStream(
        MemberStream(LinkID(channel: channel, peer: member), stream),
        VideoRequest(video.size, framesPerSecond: video.framesPerSecond), isPinned: video.isPinned)
    }
    perform(node.show(streams, at: now))
    updateEncoders()
  }

  /// Passes every frame to `sink` when the frame is due for display, and requests keyframes from
  /// all senders; nil ends that. `show` says which frames are wanted.
  ///
  /// `sink` is called on a thread of its own, with one frame at a time. A slow one misses frames
  /// and goes on at a keyframe. It must not hold the node, and may be called once more after it has
  /// been replaced.
  public func showFrames(_ sink: (@Sendable (ViewedFrame) -> Void)?) {
    display = sink.map { Display($0) }
    guard sink != nil else { return }
    for peer in node.statistics(at: now) where peer.received != nil {
      for stream in StreamID.all {
        requestKeyframe(of: MemberStream(peer.link, stream))
      }
    }
    requestKeyframe(of: nil)
  }

  /// Requests a keyframe of a member's stream, or of this node's own preview if `stream` is nil.
  private func requestKeyframe(of stream: MemberStream?) {
    guard let stream else {
      media.video(.camera)?.requestKeyframe(layer: 0)
      return
    }
    perform(node.requestKeyframe(of: stream.stream, from: stream.link, at: now))
  }

  func startMedia() {
    media.start(
      video: { [weak self] frame, stream in self?.handOver(frame, of: stream) },
      audio: { [weak self] audio in self?.onLoop { $0.encoded(audio) } },
      playout: { [weak self] reports in self?.onLoop { $0.played(reports) } },
      failed: { [weak self] error in self?.onLoop { $0.emit(.warning(error)) } })
  }

  /// Queues an encoded frame for the event loop. To bound the queue when the loop is slow,
  /// non-reference frames are dropped first, then all frames up to the next keyframe, which is
  /// requested.
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
    if encoderTargets[stream.index].contains(where: { $0.layer == frame.layer }) {
      perform(node.sendVideo(frame, of: stream, at: now))
    }
    if showsPreview, stream == .camera, frame.layer == 0, let display {
      display.show(
        ViewedFrame(
          channel: nil, member: nil, stream: stream, isKeyframe: frame.isKeyframe,
          temporalLayer: frame.temporalLayer, data: frame.data, at: frame.capturedAt), of: nil
      ) { requestKeyframe(of: $0) }
    }
  }

  private func encoded(_ audio: EncodedAudio) { perform(node.sendAudio(audio, at: now)) }

  private func played(_ reports: [AudioPlayout.Report]) {
    for report in reports {
      node.noteAudioPlayout(
        of: report.link, timestamp: report.timestamp, playedAt: report.playedAt)
      guard node.isInCall(report.link.channel) else { continue }
      meters.heard(report.link) { $0.report(report.statistics, at: now) }
    }
  }

  /// Selects the layers to encode, for the members and for this node's own preview. The microphone
  /// is open only during calls.
  func updateEncoders() {
    let calls = node.channelIDs.filter { node.isInCall($0) }
    let isSeen = calls.contains { !(node.ownMember(in: $0)?.flags.contains(.videoMuted) ?? true) }
    for video in media.videos {
      var targets = encoderTargets[video.offer.id.index]
      let isPreviewed = video.offer.id == .camera && showsPreview && isSeen
      if isPreviewed, targets.first?.layer != 0 { targets.insert(video.previewTarget, at: 0) }
      video.encode(targets)
    }
    media.audio?.setWanted(!calls.isEmpty)
  }

  func show(_ frame: ReceivedFrame, of stream: MemberStream) {
    let link = stream.link
    let offer = offer(of: stream.stream, of: link.peer, in: link.channel)
    let name = offer?.name ?? stream.stream.description
    if let other = media.recorder?.add(frame, of: stream, name: name) {
      onLoop { $0.requestKeyframe(of: other) }
    }
    if frame.isShown, configuration.measuresLatency, offer?.isPattern ?? false {
      media.meter.add(frame, from: stream)
    }
    guard let display else { return }
    let viewed = ViewedFrame(
      channel: node.name(of: link.channel), member: link.peer, stream: stream.stream,
      isKeyframe: frame.isKeyframe,
      temporalLayer: frame.temporalLayer, data: frame.data, isShown: frame.isShown,
      at: frame.completedAt)
    let due = display.add(viewed, of: stream, after: frame.delay, at: now) { other in
      onLoop { $0.requestKeyframe(of: other) }
    }
    guard due > now else { return }
    loop.scheduleTask(in: .nanoseconds((due - now).wholeNanoseconds)) { [weak self] in
      self?.assumeIsolated { $0.showDue(of: stream) }
    }
  }

  private func showDue(of stream: MemberStream) {
    display?.showDue(of: stream, at: now) { requestKeyframe(of: $0) }
  }

  /// A member's or this node's offer of a stream; nil if the stream is not offered.
  private func offer(
    of stream: StreamID, of member: NodeID, in channel: ChannelID
  ) -> StreamOffer? {
    if member == id { return media.video(stream)?.offer }
    return node.member(member, of: channel)?.stream(stream)
  }

  /// The name in the offer of a stream, or the default name of its id.
  func name(of stream: StreamID, of member: NodeID, in channel: ChannelID) -> String {
    offer(of: stream, of: member, in: channel)?.name ?? stream.description
  }

  /// Updates the name from which the recorder derives a member's file names.
  func nameRecording(_ event: NodeEvent, in channel: ChannelID) {
    switch event {
    case .channel(.memberJoined(let member)), .channel(.memberUpdated(let member)):
      media.recorder?.setName(member.name, of: LinkID(channel: channel, peer: member.id))
    default: break
    }
  }

  /// Notes what ends the measurement of the audio that is heard of a participant: not that it can
  /// no longer be reached, as it may be back soon.
  func noteHeard(_ event: NodeEvent, in channel: ChannelID) {
    switch event {
    case .channel(.callLeft(_, id, _)), .channel(.callEnded): meters.forgetHeard(in: channel)
    case .channel(.callLeft(_, let member, let reason)) where reason != .crashed:
      meters.heard[LinkID(channel: channel, peer: member)] = nil
    case .channel(.memberJoined(let member)), .channel(.memberUpdated(let member)):
      _ = meters.heard.update(LinkID(channel: channel, peer: member.id)) {
        $0.set(isSilent: member.isSilent)
      }
    default: break
    }
  }

  /// Ends recording and measurement of a member's stream, or of all the member's media if `stream`
  /// is nil.
  func endMedia(of link: LinkID, _ stream: StreamID?) {
    if let stream {
      media.recorder?.end(link, stream)
      media.meter.end(MemberStream(link, stream))
      meters.forget(MemberStream(link, stream))
      display?.forget(MemberStream(link, stream))
      return
    }
    // The playout ends the recording after the last of the member's audio has been played.
    media.playout?.end(link)
    for stream in StreamID.all {
      media.meter.end(MemberStream(link, stream))
      display?.forget(MemberStream(link, stream))
    }
    meters.forget(link)
    _ = meters.heard.update(link) { $0.interrupted() }
  }
}

extension MusterNode {
  /// The media for which this node has a source, muted or not.
  public func sources() -> OwnMedia { node.sources }
}
