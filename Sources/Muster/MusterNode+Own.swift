import MusterBase
import MusterChannel
import MusterCore
import MusterWire

extension Node {
  /// Mutes or unmutes a medium in one channel, or in all if `channel` is nil.
  mutating func setMuted(
    _ media: Command.Media, _ isMuted: Bool, in channel: ChannelID?, at now: Instant
  ) -> [Output] {
    switch media {
    case .audio: setMuted(audio: isMuted, in: channel, at: now)
    case .video: setMuted(video: isMuted, in: channel, at: now)
    case .share: setMuted(share: isMuted, in: channel, at: now)
    }
  }
}

extension Command.Media {
  /// The medium as one of the node.
  var own: OwnMedia {
    switch self {
    case .audio: .audio
    case .video: .video
    case .share: .share
    }
  }
}

/// Methods that report changes of this node's own member state and auto-join calls.
extension MusterNode {
  /// Reports changes of this node's own role, call and mute state as member events.
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

  /// The event for a call that this node is not permitted to start or join.
  ///
  /// If the role permits joining but not starting, auto-join stays on: the node joins the call as
  /// soon as another member starts one.
  func refused(_ refusal: CommandRefusal, in channel: ChannelID) -> Event {
    if case .notAllowed(.startCall, let role) = refusal, autoJoinChannels.contains(channel),
      Capability.joinCall.isAllowed(to: role, in: settings(of: channel))
    {
      return .warning(
        MusterError(
          "the role \(role.name) does not allow to start a call",
          hint: "the call is joined as soon as somebody starts one"))
    }
    autoJoinChannels.removeAll { $0 == channel }
    return .error(MusterError(refusal), command: nil)
  }

  private func settings(of channel: ChannelID) -> ChannelSettings {
    node.genesis(of: channel)?.genesis.settings ?? ChannelSettings()
  }

  /// Auto-joins calls that other members have started: the next one of the channels with auto-join,
  /// and with auto-answer every one that this node has not left.
  func autoJoinCalls() {
    for channel in node.channelIDs {
      guard !node.isInCall(channel) else {
        autoJoinChannels.removeAll { $0 == channel }
        continue
      }
      guard let call = node.call(in: channel),
        autoJoinChannels.contains(channel) || answers(call, in: channel),
        let outputs = try? node.startCall(in: channel, at: now)
      else { continue }
      perform(outputs)
    }
  }

  /// Whether auto-answer joins a call.
  func answers(_ call: ActiveCall, in channel: ChannelID) -> Bool {
    configuration.answersCalls && call.info.id != declinedCalls[channel]
  }
}
