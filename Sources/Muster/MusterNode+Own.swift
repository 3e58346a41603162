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

/// Methods that report changes of this node's own member state, and refusals.
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
  func refused(_ refusal: CommandRefusal, joinsNext: Bool) -> Event {
    guard joinsNext, case .notAllowed(_, let role) = refusal else {
      return .error(MusterError(refusal), command: nil)
    }
    return .warning(
      MusterError(
        "the role \(role.name) does not allow to start a call",
        hint: "the call is joined as soon as somebody starts one"))
  }
}
