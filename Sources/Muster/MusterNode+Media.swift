import MusterBase
import MusterChannel
import MusterCore
import MusterMedia
import MusterPipeline
import MusterWire
import NIOCore

/// One picture for a page, as it came: still VP8.
public struct ViewedFrame: Sendable {
  /// Nil for this node's own preview.
  public var member: NodeID?
  public var isKeyframe: Bool
  public var temporalLayer: Int
  public var data: [UInt8]
  /// When it was captured or received, by this node's boot clock.
  public var at: Instant
}

extension MusterNode {
  /// Hands every picture that is due for showing to `sink`, called on the node's loop, and asks all
  /// members for keyframes so that it can begin; nil to stop.
  public func showFrames(_ sink: (@Sendable (ViewedFrame) -> Void)?) {
    frameSink = sink
    showsPreview = sink != nil
    updateEncoders()
    guard sink != nil else { return }
    for peer in node.statistics() where peer.received != nil {
      perform(node.requestKeyframe(from: peer.link, at: now))
    }
    if !(media.video?.layers.isEmpty ?? true) { media.video?.requestKeyframe(layer: 0) }
  }

  func startMedia() {
    media.start(
      video: { [weak self] frame in self?.handOver(frame) },
      audio: { [weak self] audio in self?.onLoop { $0.encoded(audio) } },
      playout: { [weak self] reports in self?.onLoop { $0.played(reports) } },
      failed: { [weak self] error in self?.onLoop { $0.emit(.warning(error)) } })
  }

  /// A loop that is held up must not collect pictures without bound: first those that no other
  /// refers to are left out, then all up to the next keyframe, which is asked for.
  private nonisolated func handOver(_ frame: EncodedFrame) {
    guard backlog.admits(frame) else {
      if frame.isReference { media.video?.requestKeyframe(layer: frame.layer) }
      return
    }
    onLoop {
      $0.backlog.taken()
      $0.encoded(frame)
    }
  }

  private nonisolated func onLoop(_ body: @escaping @Sendable (isolated MusterNode) -> Void) {
    loop.execute { self.assumeIsolated { body($0) } }
  }

  private func encoded(_ frame: EncodedFrame) {
    if wantedLayers.contains(frame.layer) { perform(node.sendVideo(frame, at: now)) }
    if showsPreview, frame.layer == 0, let frameSink {
      frameSink(
        ViewedFrame(
          member: nil, isKeyframe: frame.isKeyframe, temporalLayer: frame.temporalLayer,
          data: frame.data, at: frame.capturedAt))
    }
  }

  private func encoded(_ audio: EncodedAudio) { perform(node.sendAudio(audio, at: now)) }

  private func played(_ reports: [AudioPlayout.Report]) {
    for report in reports {
      node.noteAudioPlayout(
        of: report.link, timestamp: report.timestamp, playedAt: report.playedAt)
      meters.audioLost[report.link] = report.lostPercent
    }
  }

  /// Tells the encoders what is wanted: by members, and by this node's own preview.
  func updateEncoders() {
    let isInCall = node.channelIDs.contains { node.isInCall($0) }
    var layers = wantedLayers
    let muted = node.channelIDs.contains {
      node.ownMember(in: $0)?.flags.contains(.videoMuted) ?? false
    }
    if showsPreview, isInCall, !muted, !layers.contains(0) { layers.insert(0, at: 0) }
    media.video?.encode(layers: layers)
    media.audio?.setWanted(isInCall)
  }

  func show(_ frame: ReceivedFrame, from link: LinkID, after delay: Duration) {
    if media.recorder?.add(frame, from: link) ?? false {
      onLoop { $0.perform($0.node.requestKeyframe(from: link, at: $0.now)) }
    }
    if isPattern(link) { media.meter.add(frame, from: link) }
    guard let frameSink else { return }
    let viewed = ViewedFrame(
      member: link.peer, isKeyframe: frame.isKeyframe, temporalLayer: frame.temporalLayer,
      data: frame.data, at: frame.completedAt)
    // Never before the one before it, also when the delay has just become shorter.
    let earliest = meters.shownUntil[link] ?? now
    let due = max(now + delay, earliest + .microseconds(1))
    guard due - now > .milliseconds(1) else { return frameSink(viewed) }
    meters.shownUntil[link] = due
    loop.scheduleTask(in: .nanoseconds((due - now).wholeNanoseconds)) { frameSink(viewed) }
  }

  private func member(_ link: LinkID) -> Member? {
    node.members(of: link.channel).first { $0.id == link.peer }
  }

  /// Recordings are named after members, by the name they have when their media begins.
  func nameRecording(_ event: NodeEvent, in channel: ChannelID) {
    switch event {
    case .channel(.memberJoined(let member)), .channel(.memberUpdated(let member)):
      media.recorder?.setName(member.name, of: LinkID(channel: channel, peer: member.id))
    default: break
    }
  }

  private func isPattern(_ link: LinkID) -> Bool {
    member(link)?.flags.contains(.pattern) ?? false
  }

  func endMedia(of link: LinkID) {
    // The playout tells the recorder, once it has no more sound of the member.
    media.playout?.end(link)
    media.meter.end(link)
    meters.forget(link)
  }
}

extension MusterNode {
  /// Whether this node has a source of pictures and one of sound.
  public func sources() -> (video: Bool, audio: Bool) {
    (media.video != nil, media.hasAudioSource)
  }
}
