import MusterBase
import MusterChannel
import MusterCore
import MusterWire

extension Node {
  /// Stops or resumes sending one medium, in one channel or in all.
  mutating func setMuted(
    _ media: Command.Media, _ isMuted: Bool, in channel: ChannelID?, at now: Instant
  ) -> [Output] {
    switch media {
    case .audio: setMuted(audio: isMuted, in: channel, at: now)
    case .video: setMuted(video: isMuted, in: channel, at: now)
    }
  }
}

/// What changes about this node itself, and calls that it waits for.
extension MusterNode {
  /// Reports this node's own role, call and mute state as it reports those of others.
  func reportOwnChanges() {
    for channel in node.channelIDs {
      guard let own = node.ownMember(in: channel), let name = node.name(of: channel) else {
        continue
      }
      let record = MemberRecord(own)
      let former = ownRecords.updateValue(record, forKey: channel)
      guard let former, former != record else { continue }
      emit(.memberUpdated(channel: name, own))
    }
  }

  /// The event for a call that this node wanted into and may not.
  ///
  /// A member whose role allows joining but not starting, and that was started with `--call`, waits
  /// for a call.
  func refused(_ refusal: CommandRefusal, in channel: ChannelID) -> Event {
    if case .notAllowed(.startCall, let role) = refusal, awaitedCalls.contains(channel),
      Capability.joinCall.isAllowed(to: role, in: settings(of: channel))
    {
      return .warning(
        MusterError(
          "the role \(role.name) does not allow to start a call",
          hint: "the call is joined as soon as somebody starts one"))
    }
    awaitedCalls.removeAll { $0 == channel }
    return .error(MusterError(refusal), command: nil)
  }

  private func settings(of channel: ChannelID) -> ChannelSettings {
    node.genesis(of: channel)?.genesis.settings ?? ChannelSettings()
  }

  /// Joins calls that have begun since this node was refused to start them.
  func joinAwaitedCalls() {
    for channel in awaitedCalls {
      guard !node.isInCall(channel) else {
        awaitedCalls.removeAll { $0 == channel }
        continue
      }
      guard node.call(in: channel) != nil, let outputs = try? node.startCall(in: channel, at: now)
      else { continue }
      perform(outputs)
    }
  }
}
