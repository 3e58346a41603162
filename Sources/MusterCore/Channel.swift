import MusterBase
import MusterChannel
import MusterWire

/// One channel that the node is in.
struct Channel: HasDeadline, Sendable {
  let name: String
  let genesis: SignedGenesis?
  var state: ChannelState
  let openedAt: Instant
  /// Set while the node wants to be in the call and waits to hear of one.
  var startsCallAt: Instant?
  var callState = CallState.disconnected
  /// What is switched off in this channel only.
  var muted: MemberFlags
  /// The next key while the change to it is being written; it is in force afterwards.
  var pendingKey: (commit: CommitID, key: EpochKey)?
  /// What others said why this node is no member; each is told to people once.
  var refusals: [Refusal] = []

  /// What this node tells here of its sound and picture.
  func flags(from all: MemberFlags) -> MemberFlags {
    var flags = all.union(muted)
    if flags.contains(.audioMuted) { flags.remove(.speaking) }
    return flags
  }

  /// The video streams that this node announces here.
  func streams(from all: [StreamOffer]) -> [StreamOffer] {
    all.map { offer in
      var offer = offer
      if offer.id == .camera { offer.isMuted = muted.contains(.videoMuted) }
      return offer
    }
  }

  var deadline: Instant? { soonest(state.deadline, startsCallAt) }
}
