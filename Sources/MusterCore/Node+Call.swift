import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterLink
import MusterMedia
import MusterWire

extension Node {
  /// Leaves the call; if this node is the initiator, the call ends for all participants. A node
  /// that is about to enter a call, or answers calls, does not enter this one.
  public mutating func leaveCall(in channel: ChannelID, at now: Instant) -> [Output] {
    leaveCall(in: channel, handsOver: false, at: now)
  }

  /// Leaves the call; if this node is the initiator, another participant leads it from then on. A
  /// call without another participant ends.
  public mutating func handOverCall(
    in channel: ChannelID, at now: Instant
  ) throws(CommandRefusal) -> [Output] {
    if let state = channels[channel]?.state, let call = state.call, state.isInCall,
      call.info.initiator == identity.id, call.participants.count > 1, state.successor == nil
    {
      throw .noSuccessor(endsWithInitiator: state.settings.callEndsWithInitiator)
    }
    return leaveCall(in: channel, handsOver: true, at: now)
  }

  /// The participant that would lead the call if this node, its initiator, handed it over; nil if
  /// none may, or if this node does not lead it.
  public func successor(in channel: ChannelID) -> NodeID? { channels[channel]?.state.successor }

  private mutating func leaveCall(
    in channel: ChannelID, handsOver: Bool, at now: Instant
  ) -> [Output] {
    var out: [Output] = []
    // First of all: by what follows, a node that answers would enter the call again.
    _ = channels.update(channel) { $0.intent.decline($0.state.call?.info.id) }
    endMedia(in: channel, at: now, &out)
    out += change(channel, at: now) { $0.leaveCall(handsOver: handsOver, at: now) }
    updateCallState(in: channel, at: now, &out)
    return out
  }

  /// Performs the due work of a channel: of its state, its call, and its search for relays.
  mutating func tick(channel: ChannelID, at now: Instant, _ out: inout [Output]) {
    if let due = channels[channel]?.deadline, due <= now { tickState(of: channel, at: now, &out) }
    if relaying.isDue(channel, at: now) { searchRelays(in: channel, at: now, &out) }
  }

  private mutating func tickState(
    of channel: ChannelID, at now: Instant, _ out: inout [Output]
  ) {
    guard let index = channels.index(of: channel) else { return }
    if let due = channels[at: index].state.deadline, due <= now {
      var heard = PeerTable<NodeID, (at: Instant, roundTrip: Duration?)>()
      for (link, peer) in peers where link.channel == channel {
        // Only the session of this channel counts: a peer that is active in another channel may
        // have left this channel.
        let lastHeard = associations.session(of: link).flatMap { links.lastHeard($0) }
        heard[link.peer] = (lastHeard ?? peer.upSince, roundTrip(of: link))
      }
      let outputs = channels[at: index].state.tick(
        at: now, lastHeard: { heard[$0]?.at }, roundTrip: { heard[$0]?.roundTrip })
      perform(outputs, in: channel, at: now, &out)
      if isInCall(channel) { updateCallState(in: channel, at: now, &out) }
    }
    enterCallIfDue(channel, at: now, &out)
    noteMeeting(in: channel, &out)
    changeKeyIfDue(channel, at: now, &out)
  }

  /// Executes the outputs of a channel, then updates the call and the media if the channel's state
  /// has changed.
  mutating func perform(
    _ outputs: [ChannelState.Output], in channel: ChannelID, at now: Instant,
    _ out: inout [Output]
  ) {
    guard !outputs.isEmpty else { return }
    var changed = false
    var membershipEnded = false
    var (failed, moderations): ([NodeID], [Moderation]) = ([], [])
    var role: Role?
    for output in outputs {
      switch output {
      case .send(let message, let peer):
        send([message], over: LinkID(channel: channel, peer: peer), at: now, &out)
      case .event(let event):
        if case .message = event {} else { changed = true }
        switch event {
        case .ownRoleChanged(let new):
          forgetRefusals(in: channel)
          showLinks(in: channel, &out)
          role = new
        case .keyChanged:
          showLinks(in: channel, &out)
          membershipEnded = true
        case .moderated(let moderation, _): moderations.append(moderation)
        case .memberLeft(let member, let reason):
          media.forget(LinkID(channel: channel, peer: member.id))
          if reason == .removed { membershipEnded = true }
        default: break
        }
        out.append(.event(.channel(event), in: channel))
      case .commit(let entries, let commit):
        out.append(.commit(changes(entries, for: commit), then: commit))
      case .keep(let entry):
        out.append(.write(.entry(entry.bytes, id: entry.id), in: channel))
      case .forget(let ids): out.append(.write(.forget(ids), in: channel))
      case .delivered(let id): out.append(.write(.delivered(id), in: channel))
      case .fail(let peer): failed.append(peer)
      }
    }
    if let role {
      holdMedia(role, in: channel, at: now, &out)
      reportOwnRefusal(in: channel, &out)
    }
    for moderation in moderations { execute(moderation, in: channel, at: now, &out) }
    for peer in failed { fail(LinkID(channel: channel, peer: peer), at: now, &out) }
    // The links close at once, so that a removed neighbour receives no further messages.
    if membershipEnded {
      for link in peers.keys where link.channel == channel {
        dismissNonMember(link, at: now, &out)
      }
    }
    guard changed else { return }
    // A participant may have joined, or restarted and published a presence with a new boot id, or
    // this node has left the call, which ends its search.
    if isInCall(channel) || relaying.isSearching(channel) {
      relaying.searchSoon(in: channel, at: now)
    }
    enterCallAfterChange(in: channel, at: now, &out)
    updateMedia(in: channel, at: now, &out)
  }

  /// Sets the offset from boot time to Unix time. Wall time serves for display, for the expiry of
  /// roles, to break ties between calls, and for the tags of a rendezvous server.
  public mutating func setWallClock(millisecondsSince1970: UInt64, at now: Instant) {
    let boot = now.nanoseconds / 1_000_000
    wallOffset = Int64(clamping: millisecondsSince1970) &- boot
    for channel in channels.keys {
      _ = channels.update(channel) {
        $0.state.setWallClock(offsetMilliseconds: wallOffset, at: now)
      }
    }
  }

  func wallMilliseconds(_ now: Instant) -> UInt64 {
    UInt64(clamping: wallOffset &+ now.nanoseconds / 1_000_000)
  }

  mutating func setCallState(_ state: CallState, in channel: ChannelID, _ out: inout [Output]) {
    let changed =
      channels.update(channel) { entry in
        defer { entry.callState = state }
        return entry.callState != state
      } ?? false
    if changed { out.append(.event(.callState(state), in: channel)) }
  }

  /// Recomputes the state of this node's participation in the call.
  mutating func updateCallState(
    in channel: ChannelID, at now: Instant, _ out: inout [Output]
  ) {
    guard let entry = channels[channel] else { return }
    guard entry.state.isInCall else {
      if entry.intent.startsAt == nil { setCallState(.disconnected, in: channel, &out) }
      return
    }
    let others = entry.state.call?.participants.filter { $0 != identity.id } ?? []
    let suspected = entry.state.suspected
    let hearsOthers = others.contains { other in
      peers[LinkID(channel: channel, peer: other)] != nil && !suspected.contains(other)
    }
    // A node that is alone in the call, because all others have left, counts as connected. One that
    // has joined over others is connecting until it has a path to a participant.
    let cutOff: CallState = entry.callState == .connecting ? .connecting : .reconnecting
    setCallState(others.isEmpty || hearsOthers ? .connected : cutOff, in: channel, &out)
  }

  // MARK: Mute state and sources

  /// Mutes or unmutes the microphone in one channel; if `channel` is nil, in all current and future
  /// channels.
  public mutating func setMuted(
    audio: Bool, in channel: ChannelID? = nil, at now: Instant
  ) -> [Output] {
    mute(.audio, audio, in: channel, at: now)
  }

  /// Turns the camera off or on in one channel; if `channel` is nil, in all current and future
  /// channels. Other streams continue.
  public mutating func setMuted(
    video: Bool, in channel: ChannelID? = nil, at now: Instant
  ) -> [Output] {
    mute(.video, video, in: channel, at: now)
  }

  /// Stops or resumes sending the second video stream in one channel; if `channel` is nil, in all
  /// current and future channels.
  public mutating func setMuted(
    share: Bool, in channel: ChannelID? = nil, at now: Instant
  ) -> [Output] {
    mute(.share, share, in: channel, at: now)
  }

  private mutating func mute(
    _ media: OwnMedia, _ isMuted: Bool, in channel: ChannelID?, at now: Instant
  ) -> [Output] {
    let entries = channel.map { [$0] } ?? channels.keys
    if channel == nil {
      if isMuted { configuration.muted.insert(media) } else { configuration.muted.remove(media) }
    }
    for id in entries {
      _ = channels.update(id) { entry in
        if isMuted { entry.muted.insert(media) } else { entry.muted.remove(media) }
      }
    }
    var out = change(at: now) { _ in }
    for id in entries { updateMedia(in: id, at: now, &out) }
    return out
  }

  /// Mutes what a new role of this node would start: its user turns it on, not an owner. The role
  /// that it enters a channel with starts nothing anew.
  private mutating func holdMedia(
    _ role: Role, in channel: ChannelID, at now: Instant, _ out: inout [Output]
  ) {
    let held = mediaToHold(role, in: channel)
    _ = channels.update(channel) { entry in
      entry.note(role)
      entry.muted.formUnion(held)
    }
    // What the role allows is also in the flags.
    out += change(at: now) { _ in }
    if !held.isEmpty { out.append(.event(.mediaHeld(held, role), in: channel)) }
  }

  private func mediaToHold(_ role: Role, in channel: ChannelID) -> OwnMedia {
    guard let entry = channels[channel], let former = entry.formerRole else { return [] }
    return OwnMedia(permittedTo: role, in: entry.state.settings)
      .subtracting(OwnMedia(permittedTo: former, in: entry.state.settings))
      .intersection(media.local.sources).subtracting(entry.muted)
  }

  /// The media for which this node has a source, muted or not.
  public var sources: OwnMedia { media.local.sources }

  /// Sets the sources of this node: its video streams, and whether it has audio. All other streams
  /// are withdrawn, and so are streams without layers. The names of the streams must be valid.
  public mutating func setSources(
    _ streams: [StreamOffer], hasAudio: Bool, at now: Instant
  ) -> [Output] {
    change(at: now) { $0.setSources(streams, hasAudio: hasAudio) }
  }

  mutating func change(at now: Instant, _ body: (inout LocalMedia) -> Void) -> [Output] {
    var out: [Output] = []
    body(&media.local)
    let (flags, offers) = (media.local.flags, media.local.streams.offers)
    for channel in channels.keys {
      let outputs =
        channels.update(channel) { entry in
          entry.state.setFlags(entry.flags(from: flags), at: now)
            + entry.state.setStreams(entry.streams(from: offers), at: now)
        } ?? []
      perform(outputs, in: channel, at: now, &out)
    }
    perform(media.selectLayers(at: now), at: now, &out)
    return out
  }
}
