import MusterBase
import MusterChannel
import MusterCongestion
import MusterCrypto
import MusterLink
import MusterMedia
import MusterWire

/// The inputs and outputs of `MediaSessions`, which owns the media state.
extension Node {
  /// Executes the outputs of the media sessions.
  mutating func perform(
    _ outputs: [MediaSessions.Output], at now: Instant, _ out: inout [Output]
  ) {
    var hasQueued = false
    for output in outputs {
      switch output {
      case .send(let payload, let link): send(payload, over: link, at: now, &out)
      case .queue(let packet, let priority):
        queue(packet, priority, at: now, &out)
        hasQueued = true
      case .control(let messages, let link): send(messages, over: link, at: now, &out)
      case .host(let output): out.append(output)
      }
    }
    if hasQueued { perform(congestion.release(at: now), at: now, &out) }
  }

  private mutating func performed(
    _ outputs: [MediaSessions.Output], at now: Instant
  ) -> [Output] {
    var out: [Output] = []
    out.reserveCapacity(outputs.count)
    perform(outputs, at: now, &out)
    refreshDeadlines()
    return out
  }

  // MARK: Encoder output

  /// Sends one encoded frame of a stream to all receivers of the frame's layer.
  public mutating func sendVideo(
    _ frame: EncodedFrame, of stream: StreamID = .camera, at now: Instant
  ) -> [Output] {
    let waits = media.sessions.keys.map { videoWait(over: $0, at: now) }
    return performed(media.sendVideo(frame, of: stream, waits: waits, at: now), at: now)
  }

  /// What this node gives up in calls for lack of CPU.
  public var adaptation: CPUAdaptation.Step { media.local.streams.adaptation.step }

  /// Whether encoders are to work fast rather than well, for lack of CPU.
  public var isEncodingQuickly: Bool { media.local.streams.adaptation.isEncodingQuickly }

  /// The time for which received datagrams may gather before this node takes them: the less often
  /// it wakes, the less CPU time they take.
  public var coalescing: Duration {
    media.isInCall ? media.local.streams.adaptation.coalescing : .zero
  }

  /// Takes the work of the encoders since the last call: the number of captured frames, and the
  /// mean time from capture to the end of encoding, as a share of the frame interval.
  public mutating func noteEncoding(_ share: Double, frames: Int) {
    media.overuse.noteEncoding(share, frames: frames)
  }

  /// Sends one frame of this node's microphone to the participants of all calls in which this
  /// node may send audio.
  public mutating func sendAudio(_ audio: EncodedAudio, at now: Instant) -> [Output] {
    var out: [Output] = []
    if media.local.detectSpeech(level: audio.level, at: now) { out += change(at: now) { _ in } }
    for index in 0..<media.sessions.count {
      let conditions = audioConditions(of: media.sessions.keys[index])
      media.adaptAudio(to: conditions, forSessionAt: index, at: now)
    }
    perform(media.sendAudio(audio, at: now), at: now, &out)
    refreshDeadlines()
    return out
  }

  private mutating func audioConditions(of link: LinkID) -> AudioSender.Conditions {
    let capabilities = associations.session(of: link).map { links.capabilities(of: $0) }
    let path = path(of: link).flatMap { congestion.path($0) }
    return AudioSender.Conditions(
      roundTrip: roundTrip(of: link) ?? MediaSessions.defaultRoundTrip,
      queueDelay: path?.queueDelay ?? .zero, estimate: path.map { Int($0.estimate.kbps) },
      spareRate: media.bandwidth(of: link),
      takesCopies: capabilities?.contains(.redundantAudio) ?? false,
      takesLongPackets: capabilities?.contains(.longAudioPackets) ?? false,
      savesPackets: media.local.streams.adaptation.sendsLongPackets)
  }

  // MARK: Recipients

  /// Begins and ends media with members as they join and leave the call.
  mutating func updateMedia(in channel: ChannelID, at now: Instant, _ out: inout [Output]) {
    guard let entry = channels[channel] else { return }
    let call = entry.state.isInCall ? entry.state.call : nil
    let sending = rights(ofItselfIn: entry)
    for link in peers.keys where link.channel == channel {
      guard call?.participants.contains(link.peer) ?? false else {
        perform(media.end(link, at: now), at: now, &out)
        continue
      }
      if !media.isActive(link) {
        if let path = path(of: link), let roundTrip = links.paths.answerTime(path) {
          media.setRoundTrip(roundTrip, of: link)
        }
        media.begin(link, at: now)
        beginCongestionControl(of: link, at: now)
        pingSoon(link, at: now)
      }
      let member = entry.state.member(link.peer)
      media.update(
        link, sending: sending, receiving: rights(of: link.peer, in: entry),
        presence: CallMedia.MediaPresence(
          offers: member?.streams ?? [], isSpeaking: member?.flags.contains(.speaking) ?? false,
          seniority: call?.byPresence.firstIndex(of: link.peer) ?? 0), at: now)
    }
    perform(media.updateRequests(at: now), at: now, &out)
    updateCallState(in: channel, at: now, &out)
    perform(media.selectLayers(at: now), at: now, &out)
  }

  /// The media that this node may send in a channel, by its role and its mute state.
  private func rights(ofItselfIn entry: Channel) -> MediaRights {
    var rights = Self.rights { entry.state.isSelfAllowed($0) }
    if entry.muted.contains(.audio) { rights.audio = false }
    if entry.muted.contains(.video), rights[.camera] == nil { rights[.camera] = .muted }
    if entry.muted.contains(.share), rights[.screen] == nil { rights[.screen] = .muted }
    return rights
  }

  /// The media that a member may send, by its role.
  private func rights(of member: NodeID, in entry: Channel) -> MediaRights {
    Self.rights { entry.state.may($0, member) }
  }

  private static func rights(_ may: (Capability) -> Bool) -> MediaRights {
    var rights = MediaRights()
    rights.audio = may(.sendAudio)
    let video: LayerReason? = may(.sendVideo) ? nil : .role
    let screen: LayerReason? = may(.share) ? nil : .role
    for stream in StreamID.all { rights[stream] = stream == .screen ? screen : video }
    return rights
  }

  // MARK: Bandwidth

  /// Selects the layers for another path, of which little is known yet: layers are not lowered for
  /// it before the probes are answered, and may rise at once.
  mutating func updateBandwidthForNewPath(
    of link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    guard media.isActive(link) else { return }
    media.pathChanged(of: link)
    beginCongestionControl(of: link, at: now)
    perform(media.selectLayers(at: now), at: now, &out)
  }

  private mutating func beginCongestionControl(of link: LinkID, at now: Instant) {
    guard let session = associations.session(of: link), let path = path(of: link) else { return }
    let givesFeedback = links.capabilities(of: session).contains(.congestionFeedback)
    media.set(givesFeedback: givesFeedback, link, at: now)
    guard givesFeedback else { return }
    congestion.begin(session, over: path.route, at: now)
    planUplink(at: now)
    limitToUplinkShare(link, at: now)
  }

  /// Selects the layers that a peer now requests; its path is probed for as much.
  mutating func updateDemand(over link: LinkID, at now: Instant, _ out: inout [Output]) {
    planUplink(at: now)
    if let path = path(of: link) { _ = shareBandwidth(of: path, at: now) }
    perform(media.selectLayers(at: now), at: now, &out)
  }

  /// Selects the layers for the bandwidth that a path now has.
  mutating func updateBandwidth(of path: PathID, at now: Instant, _ out: inout [Output]) {
    let hasChanged = shareBandwidth(of: path, at: now)
    if planUplink(at: now) || hasChanged { perform(media.selectLayers(at: now), at: now, &out) }
  }

  /// Asks for a report on a path with padding, unless media no longer needs it.
  mutating func ask(about path: PathID, at now: Instant, _ out: inout [Output]) {
    updateBandwidth(of: path, at: now, &out)
    guard let link = mediaLinks(on: path).first else { return }
    let padding = [UInt8](repeating: PayloadKind.keepaliveByte, count: 2)
    send(OutgoingPayload(padding), isReleased: true, over: link, at: now, &out)
  }

  /// The links in a call that use a path.
  private func mediaLinks(on path: PathID) -> [LinkID] {
    peers.keys.filter { $0.peer == path.peer && media.isActive($0) && self.path(of: $0) == path }
  }

  /// Shares the bandwidth that a path has for video among the links that use it. Returns whether a
  /// share has changed.
  mutating func shareBandwidth(of path: PathID, at now: Instant) -> Bool {
    guard let bandwidth = congestion.videoBandwidth(on: path, at: now) else { return false }
    let users = mediaLinks(on: path)
    var demand = 0
    var hasChanged = false
    for link in users {
      demand += media.demand(over: link)
      var share = Int(bandwidth.kbps) / users.count
      if congestion.isStarting(path, at: now), let former = media.bandwidth(of: link) {
        share = max(share, former)
      }
      if media.set(pathBandwidth: share, of: link) { hasChanged = true }
    }
    congestion.set(videoDemand: DataRate(kbps: Double(demand)), on: path, at: now)
    return hasChanged
  }

  mutating func endMedia(in channel: ChannelID, at now: Instant, _ out: inout [Output]) {
    for link in peers.keys where link.channel == channel {
      perform(media.end(link, at: now), at: now, &out)
    }
  }

  /// Requests no more of a stream than `request`, by command. If `stream` is nil, that applies to
  /// every stream; if `member` is nil, to all current and future participants. `isPinned` lets the
  /// video of a member rank before all that are not pinned.
  public mutating func watch(
    _ request: VideoRequest, stream: StreamID? = nil, of member: NodeID?, isPinned: Bool = false,
    in channel: ChannelID, at now: Instant
  ) -> [Output] {
    guard channels[channel] != nil else { return [] }
    return performed(
      media.watch(
        request, stream: stream, of: member, isPinned: isPinned, in: channel, at: now), at: now)
  }

  /// Requests what a viewer shows of the members' video; nil if there is no viewer any more.
  public mutating func show(_ streams: [ShownStream]?, at now: Instant) -> [Output] {
    performed(media.show(streams, at: now), at: now)
  }

  // MARK: Reports from the sinks

  /// Requests a keyframe of a stream because a sink could not decode a frame or was newly opened.
  public mutating func requestKeyframe(
    of stream: StreamID = .camera, from link: LinkID, at now: Instant
  ) -> [Output] {
    performed(media.requestKeyframe(of: stream, from: link, at: now), at: now)
  }

  /// Records that audio with this RTP timestamp is played at `playedAt`, for lip sync.
  public mutating func noteAudioPlayout(
    of link: LinkID, timestamp: UInt32, playedAt: Instant
  ) {
    media.noteAudioPlayout(of: link, timestamp: timestamp, playedAt: playedAt)
  }

  /// The path and the media statistics of every peer whose link the host has heard of, ordered by
  /// peer, then by channel.
  public func statistics(at now: Instant) -> [PeerStatistics] {
    peers.keys.filter { peers[$0]?.isShown ?? false }.map { link in
      let statistics = media.statistics(of: link, at: now)
      let path = path(of: link)
      return PeerStatistics(
        link: link, address: path?.route.address, via: relay(of: link),
        roundTrip: roundTrip(of: link),
        estimate: path.flatMap { congestion.path($0)?.measured },
        lossPercent: statistics?.lossPercent ?? 0, sent: statistics?.camera.sent,
        received: statistics?.camera.received, streams: statistics?.others ?? [])
    }
  }
}
