import MusterBase
import MusterChannel
import MusterWire

/// One channel that the node is in.
struct Channel: HasDeadline, Sendable {
  let name: String
  let genesis: SignedGenesis?
  var state: ChannelState
  let openedAt: Instant
  /// Which call this node enters without being told again.
  var intent: CallIntent
  var callState = CallState.disconnected
  /// The media that this node does not send in this channel, whatever its role permits.
  var muted: OwnMedia
  /// The role that this node had last; nil until it has its first role here.
  var formerRole: Role?
  /// The next key while its commit is being written to disk; nil otherwise.
  var pendingKey: PendingKey?
  /// Why peers refused this node as a member; cleared when this node's role changes. A reason
  /// causes an event only when it is added.
  var refusals: [Refusal] = []
  /// The likely reasons reported for being the only member here.
  var solitude = Solitude()
  /// Whether its keys come from a backup, and no other member has been met since.
  var isRestored = false

  /// Whether members may have a newer key: if this node changed an older one, they would not find
  /// each other any more.
  var mayHaveOutdatedKey: Bool { isRestored && state.comparedAt == nil }

  /// This node's flags in its presence in this channel, including mute states. Others also see it
  /// muted while its role may not send, so that they do so for a moment longer if the role changes:
  /// what the new role allows is held back first (`Node.holdMedia`).
  func flags(from all: MemberFlags) -> MemberFlags {
    var flags = all
    if muted.contains(.audio) {
      flags.insert(.audioMuted)
      flags.remove(.speaking)
    }
    if muted.contains(.video) { flags.insert(.videoMuted) }
    if muted.contains(.share) { flags.remove(.sharing) }
    if let role = formerRole, role > .none { flags.silence(for: role, in: state.settings) }
    return flags
  }

  /// The video streams that this node offers in this channel.
  func streams(from all: [StreamOffer]) -> [StreamOffer] {
    all.map { offer in
      var offer = offer
      if offer.id == .camera { offer.isMuted = muted.contains(.video) }
      if offer.id == .screen { offer.isMuted = muted.contains(.share) }
      return offer
    }
  }

  /// Notes the role that this node has, once it has one.
  mutating func note(_ role: Role) {
    if role > .none || formerRole != nil { formerRole = role }
  }

  var deadline: Instant? {
    let keyChangeDueAt = mayHaveOutdatedKey ? nil : state.keyChangeDueAt
    return soonest(soonest(state.deadline, intent.startsAt), keyChangeDueAt)
  }
}

/// A key that is in force once its commit is on disk.
struct PendingKey: Sendable {
  let commit: CommitID
  let key: EpochKey
  /// The members whose expired roles are the reason for the change; empty after a removal.
  let expired: [NodeID]
}
