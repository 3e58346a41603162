import MusterBase
import MusterChannel
import MusterWire

/// One channel that the node is in.
struct Channel: Sendable {
  let name: String
  let genesis: SignedGenesis?
  /// In rising order, the last one in force, `Limits.formerKeys` before it at most.
  var keys: [EpochKey]
  var state: ChannelState
  let openedAt: Instant
  /// Set while the node wants to be in the call and waits to hear of one.
  var startsCallAt: Instant?
  /// When it is next looked at whether somebody in the call is missing.
  var relaySearchAt: Instant?
  var callState = CallState.disconnected
  /// What is switched off in this channel only.
  var muted: MemberFlags = []
  /// The largest picture asked of those who come into the call.
  var requested: RequestedResolution
  /// The next key while the change to it is being written; it is in force afterwards.
  var pendingKey: (commit: CommitID, key: EpochKey)?
  /// What others said why this node is no member; each is told to people once.
  var refusals: [Refusal] = []

  /// The key in force.
  var key: EpochKey { keys[keys.count - 1] }

  /// What this node tells here of its sound and picture.
  func flags(from all: MemberFlags) -> MemberFlags {
    var flags = all.union(muted)
    if flags.contains(.audioMuted) { flags.remove(.speaking) }
    return flags
  }

  var deadline: Instant? { soonest(soonest(state.deadline, startsCallAt), relaySearchAt) }
}
