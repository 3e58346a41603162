import MusterBase
import MusterMedia
import MusterMesh
import MusterWire

extension Node {
  /// Starts the channel's call, or joins it when there is one.
  public mutating func startCall(in channel: ChannelID, at now: Instant) -> [Output] {
    var out: [Output] = []
    startCall(in: channel, at: now, &out)
    return out
  }

  mutating func startCall(in channel: ChannelID, at now: Instant, _ out: inout [Output]) {
    guard let entry = channels[channel], !entry.state.isInCall, entry.startsCallAt == nil else {
      return
    }
    setCallState(.connecting, in: channel, &out)
    // Who has just arrived first listens whether there is a call already.
    let due = max(now, entry.openedAt + configuration.startGrace)
    _ = channels.update(channel) { $0.startsCallAt = due }
    enterCallIfDue(channel, at: now, &out)
  }

  /// Leaves the call; the initiator's leaving ends it for all.
  public mutating func leaveCall(in channel: ChannelID, at now: Instant) -> [Output] {
    var out: [Output] = []
    endMedia(in: channel, at: now, &out)
    _ = channels.update(channel) { $0.startsCallAt = nil }
    let outputs = channels.update(channel) { $0.state.leaveCall(at: now) } ?? []
    perform(outputs, in: channel, at: now, &out)
    return out
  }

  mutating func tick(channel: ChannelID, at now: Instant, _ out: inout [Output]) {
    let outputs = channels.update(channel) { $0.state.tick(at: now) } ?? []
    perform(outputs, in: channel, at: now, &out)
    enterCallIfDue(channel, at: now, &out)
  }

  /// Carries out what a channel asks for, then follows what it changed.
  mutating func perform(
    _ outputs: [ChannelState.Output], in channel: ChannelID, at now: Instant,
    _ out: inout [Output]
  ) {
    guard !outputs.isEmpty else { return }
    var changed = false
    for output in outputs {
      switch output {
      case .send(let message, let peer):
        send([message], over: LinkID(channel: channel, peer: peer), at: now, &out)
      case .event(let event):
        changed = true
        out.append(.event(.channel(event), in: channel))
      }
    }
    guard changed else { return }
    enterCallIfDue(channel, at: now, &out)
    updateMedia(in: channel, at: now, &out)
  }

  /// Joins a call that others have, or proposes one when the time to listen is over.
  private mutating func enterCallIfDue(
    _ channel: ChannelID, at now: Instant, _ out: inout [Output]
  ) {
    guard let entry = channels[channel], let due = entry.startsCallAt else { return }
    guard entry.state.call != nil || now >= due else { return }
    _ = channels.update(channel) { $0.startsCallAt = nil }
    let proposal = CallID(high: prng.next(), low: prng.next())
    let startedAt = wallMilliseconds(now)
    let outputs =
      channels.update(channel) {
        $0.state.startOrJoinCall(proposing: proposal, startedAt: startedAt, at: now)
      } ?? []
    perform(outputs, in: channel, at: now, &out)
  }

  /// Tells the node how wall time relates to boot time; for display and for ties only.
  public mutating func setWallClock(millisecondsSince1970: UInt64, at now: Instant) {
    let boot = now.nanoseconds / 1_000_000
    wallOffset = Int64(clamping: millisecondsSince1970) &- boot
  }

  private func wallMilliseconds(_ now: Instant) -> UInt64 {
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

  // MARK: This node's own state

  /// Silences or restores the microphone for everyone.
  public mutating func setMuted(audio: Bool, at now: Instant) -> [Output] {
    change(at: now) { $0.set(.audioMuted, to: audio) }
  }

  /// Switches the camera's pictures off or on for everyone.
  public mutating func setMuted(video: Bool, at now: Instant) -> [Output] {
    change(at: now) { $0.set(.videoMuted, to: video) }
  }

  /// What this node can send: its layers, smallest first, and whether it has sound.
  public mutating func setSources(
    layers: [VideoLayer], isPattern: Bool, hasAudio: Bool, at now: Instant
  ) -> [Output] {
    change(at: now) {
      $0.layers = Array(layers.prefix(Limits.spatialLayers))
      $0.set(.pattern, to: isPattern)
      $0.set(.audio, to: hasAudio)
    }
  }

  mutating func change(at now: Instant, _ body: (inout Publisher) -> Void) -> [Output] {
    var out: [Output] = []
    body(&publisher)
    let (flags, layers) = (publisher.flags, publisher.layers)
    for channel in channels.keys {
      let outputs =
        channels.update(channel) { entry in
          entry.state.setFlags(flags, at: now) + entry.state.setLayers(layers, at: now)
        } ?? []
      perform(outputs, in: channel, at: now, &out)
    }
    publish(at: now, &out)
    return out
  }
}
