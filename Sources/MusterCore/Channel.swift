import MusterBase
import MusterChannel
import MusterWire

/// One channel that the node is in.
struct Channel: HasDeadline, Sendable {
  let name: String
  let genesis: SignedGenesis?
  var state: ChannelState
  let openedAt: Instant
  /// The time at which this node starts a call if none is known by then; nil if this node is in the
  /// call or not about to enter a call.
  var startsCallAt: Instant?
  var callState = CallState.disconnected
  /// The mute state in this channel: `audioMuted`, `videoMuted`.
  var muted: MemberFlags
  /// The next key while its commit is being written to disk; nil otherwise.
  var pendingKey: (commit: CommitID, key: EpochKey)?
  /// Why peers refused this node as a member; cleared when this node's role changes. A reason
  /// causes an event only when it is added.
  var refusals: [Refusal] = []

  /// This node's flags in its presence in this channel, including mute states.
  func flags(from all: MemberFlags) -> MemberFlags {
    var flags = all.union(muted)
    if flags.contains(.audioMuted) { flags.remove(.speaking) }
    return flags
  }

  /// The video streams that this node offers in this channel.
  func streams(from all: [StreamOffer]) -> [StreamOffer] {
    all.map { offer in
      var offer = offer
      if offer.id == .camera { offer.isMuted = muted.contains(.videoMuted) }
      return offer
    }
  }

  var deadline: Instant? { soonest(state.deadline, startsCallAt) }
}
