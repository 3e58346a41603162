import MusterBase
import MusterChannel
import MusterCore
import MusterDevices
import MusterMedia
import MusterPipeline
import MusterWire

extension MusterNode {
  /// Requests the videos that a viewer shows, in place of those of the last call, and beside what
  /// is recorded; nil if there is no viewer any more. Their frames arrive at the sink of
  /// `showFrames`.
  public func show(_ videos: [ShownVideo]?) {
    media.showsPreview = false
    let streams = videos?.compactMap { video -> ShownStream? in
      guard case .member(let member, let stream, let name) = video.source else {
        media.showsPreview = true
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
    media.display = sink.map { Display($0) }
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
      media[.camera]?.stream.requestKeyframe(layer: 0)
      return
    }
    perform(node.requestKeyframe(of: stream.stream, from: stream.link, at: now))
  }

  /// Calls `body` on the event loop once the current outputs have been performed.
  private func later(_ body: @escaping @Sendable (isolated MusterNode) -> Void) {
    loop.execute { self.assumeIsolated { body($0) } }
  }

  /// Tells others which media this node has a source for.
  func offerSources() {
    perform(node.setSources(media.offers, hasAudio: media.hasAudio, at: now))
  }

  /// Replaces the source of a video stream of this node while it runs; nil for none.
  package func use(_ input: VideoInput?, for stream: StreamID) {
    if !isStopping { media.use(input, for: stream) }
  }

  /// Replaces the source of this node's audio; nil for none.
  package func use(_ input: AudioInput?) {
    guard !isStopping else { return }
    media.use(input)
    offerSources()
    updateEncoders()
  }

  /// Replaces the sink of the audio of others; nil for none.
  package func use(_ output: AudioOutput?) {
    if !isStopping { media.use(output) }
  }

  /// Takes what a video stream of this node delivers.
  func take(_ output: LocalVideoStream.Output, of stream: StreamID) {
    guard !isStopping else { return }
    switch output {
    case .format(let format, let revision):
      media.take(format, revision: revision, of: stream)
      offerSources()
      updateEncoders()
    case .frame(let frame, let revision):
      guard let video = media[stream] else { return }
      video.stream.backlog.taken()
      if video.revision == revision { encoded(frame, of: video) }
    case .pace(let share, let frames): node.noteEncoding(share, frames: frames)
    case .failed(let error): emit(.warning(error))
    }
  }

  private func encoded(_ frame: EncodedFrame, of video: NodeMedia.LocalVideo) {
    let stream = video.stream.id
    if video.targets.contains(where: { $0.layer == frame.layer }) {
      perform(node.sendVideo(frame, of: stream, at: now))
    }
    if media.showsPreview, stream == .camera, frame.layer == 0, let display = media.display {
      display.show(
        ViewedFrame(
          channel: nil, member: nil, stream: stream, isKeyframe: frame.isKeyframe,
          temporalLayer: frame.temporalLayer, data: frame.data, at: frame.capturedAt), of: nil)
      restoreDisplay()
    }
  }

  func encoded(_ audio: EncodedAudio) { perform(node.sendAudio(audio, at: now)) }

  func played(_ reports: [Playout.Report]) {
    for report in reports {
      node.noteAudioPlayout(
        of: report.link, timestamp: report.timestamp, playedAt: report.playedAt)
      guard node.isInCall(report.link.channel) else { continue }
      meters.heard(report.link) { $0.report(report.statistics, at: now) }
    }
  }

  /// Selects the layers to encode, for the members and for this node's own preview.
  func updateEncoders() {
    let calls = node.channelIDs.filter { node.isInCall($0) }
    let isSeen = calls.contains { !(node.ownMember(in: $0)?.flags.contains(.videoMuted) ?? true) }
    media.updateEncoders(isSeen: isSeen, isInCall: !calls.isEmpty)
  }

  func show(_ frame: ReceivedFrame, of stream: MemberStream) {
    let link = stream.link
    let offer = offer(of: stream.stream, of: link.peer, in: link.channel)
    let name = offer?.name ?? stream.stream.description
    if let other = media.recorder?.add(frame, of: stream, name: name) {
      later { $0.requestKeyframe(of: other) }
    }
    if frame.isShown, configuration.measuresLatency, offer?.isPattern ?? false {
      media.meter.add(frame, from: stream)
    }
    guard let display = media.display else { return }
    let viewed = ViewedFrame(
      channel: node.name(of: link.channel), member: link.peer, stream: stream.stream,
      isKeyframe: frame.isKeyframe,
      temporalLayer: frame.temporalLayer, data: frame.data, isShown: frame.isShown,
      at: frame.completedAt)
    let due = display.add(viewed, of: stream, after: frame.delay, at: now)
    if display.hasRecovered { later { $0.restoreDisplay() } }
    guard due > now else { return }
    loop.schedule(at: due) { [weak self] in
      self?.assumeIsolated { $0.showDue(of: stream) }
    }
  }

  /// Requests keyframes of the streams of which a slow viewer has missed frames.
  private func restoreDisplay() {
    for stream in media.display?.takeBroken() ?? [] { requestKeyframe(of: stream) }
  }

  private func showDue(of stream: MemberStream) {
    media.display?.showDue(of: stream, at: now)
    restoreDisplay()
  }

  /// A member's or this node's offer of a stream; nil if the stream is not offered.
  private func offer(
    of stream: StreamID, of member: NodeID, in channel: ChannelID
  ) -> StreamOffer? {
    if member == id { return media[stream]?.offer }
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
      media.display?.forget(MemberStream(link, stream))
      return
    }
    // The playout ends the recording after the last of the member's audio has been played.
    media.playout?.end(link)
    for stream in StreamID.all {
      media.meter.end(MemberStream(link, stream))
      media.display?.forget(MemberStream(link, stream))
    }
    meters.forget(link)
    _ = meters.heard.update(link) { $0.interrupted() }
  }
}

extension MusterNode {
  /// The media for which this node has a source, muted or not.
  public func sources() -> OwnMedia { node.sources }
}
