import MusterBase
import MusterWire

/// A member of a channel as its presence describes it, sanitised for display.
public struct Member: Equatable, Sendable {
  /// The member's public key.
  public var id: NodeID
  /// The display name, sanitised; the short id if sanitising leaves nothing.
  public var name: String
  /// The role in force; presenter for all members of an open channel.
  public var role: Role
  /// The member's flags; `inCall` is set exactly when `call` is.
  public var flags: MemberFlags
  /// The call that the member's presence names; nil outside calls.
  public var call: CallID?
  /// The video streams on offer, in ascending order.
  public var streams: [StreamOffer]
  /// The boot id of the member's current run; a new one means a restart.
  public var bootID: UInt64

  /// `name` must be sanitised; `streams` in ascending order.
  public init(
    id: NodeID, name: String, role: Role = .presenter, flags: MemberFlags = [],
    call: CallID? = nil, streams: [StreamOffer] = [], bootID: UInt64
  ) {
    self.id = id
    self.name = name
    self.role = role
    self.flags = flags
    self.call = call
    self.streams = streams
    self.bootID = bootID
  }

  /// Whether the member's presence names a call.
  public var isInCall: Bool { call != nil }

  /// Derives a member from its presence, with the flags that agree with the call and the role: a
  /// member cannot speak outside a call, and is muted without the right to send.
  public init(_ presence: Presence, of id: NodeID, role: Role, settings: ChannelSettings) {
    var flags = presence.flags
    if presence.call == nil { flags.remove(.inCall) } else { flags.insert(.inCall) }
    if presence.call == nil { flags.remove(.speaking) }
    flags.silence(for: role, in: settings)
    self.init(
      id: id, name: Self.shownName(presence.name, of: id), role: role, flags: flags,
      call: presence.call?.id, streams: presence.streams.map(Self.usable), bootID: presence.bootID)
  }

  /// The stream, under its standard name if it is a camera or screen, and without layers if any
  /// layer is invalid: layers are numbered by index, so a single layer cannot be dropped.
  private static func usable(_ stream: StreamOffer) -> StreamOffer {
    var stream = stream
    if stream.id <= .screen { stream.name = stream.id.description }
    let isUsable = stream.layers.allSatisfy {
      $0.size.width > 0 && $0.size.height > 0 && $0.framesPerSecond > 0
    }
    if !isUsable { stream.layers = [] }
    return stream
  }

  /// The stream with this number; nil if the member does not offer it.
  public func stream(_ id: StreamID) -> StreamOffer? { streams.first { $0.id == id } }

  /// Whether camera frames can be expected: the member offers a camera, which is not muted.
  public var hasCamera: Bool { stream(.camera).map { !$0.isMuted && !$0.layers.isEmpty } ?? false }

  /// The name made safe to show. One that can be taken for an id is quoted, since people compare
  /// ids and name members by them; a member without a name is shown by its id.
  static func shownName(_ name: String, of id: NodeID) -> String {
    let safe = DisplayText.sanitized(name, limit: Limits.nameBytes)
    guard !safe.isEmpty else { return id.short }
    return LookAlikes.resemblesID(safe) ? "\"\(safe)\"" : safe
  }
}

extension MemberFlags {
  /// Sets the flags of muted media for what a role may not send.
  public mutating func silence(for role: Role, in settings: ChannelSettings) {
    if !Capability.sendAudio.isAllowed(to: role, in: settings) {
      insert(.audioMuted)
      remove(.speaking)
    }
    if !Capability.sendVideo.isAllowed(to: role, in: settings) { insert(.videoMuted) }
  }
}

/// Why a member left the channel or a call.
public enum LeaveReason: String, Sendable {
  /// The member left gracefully.
  case left
  /// The member stopped answering, and no reachable member hears it.
  case crashed
  /// The member was removed from the call, or has lost its membership, or this node has, which
  /// separates this node from all members.
  case removed
  /// The member restarted as another process.
  case replaced
  /// The member is in another call, into which this one merges.
  case merged
}

/// An event in a channel, for the host to report.
public enum ChannelEvent: Equatable, Sendable {
  /// A member became reachable, directly or through other members.
  case memberJoined(Member)
  /// The name, role, flags, call or streams of a member changed.
  case memberUpdated(Member)
  /// A member has left or can no longer be reached; its last state is given.
  case memberLeft(Member, LeaveReason)
  /// A call is active; its current participants are listed and cause no `callJoined`.
  case callStarted(ActiveCall)
  /// A member joined the call; the given call includes it.
  case callJoined(ActiveCall, NodeID)
  /// A participant left the call; the given call no longer includes it.
  case callLeft(ActiveCall, NodeID, LeaveReason)
  /// The same call continues under another initiator.
  case callHandedOver(ActiveCall)
  /// A call has ended, for one of the reasons in `CallEndReason`; the initiator of one that was
  /// ended is the member that did so.
  case callEnded(CallInfo, reason: String)
  /// A member of a higher role mutes a member in the active call for everyone, or removes it from
  /// the call; the removal itself follows as `callLeft`.
  case moderated(Moderation, by: NodeID)
  /// A text message to show; each message is reported once, in causal order.
  case message(TextMessage)
  /// Other members refuse this node as a member.
  case refused(Refusal)
  /// The owner has changed the channel's key.
  case keyChanged(epoch: UInt32)
  /// Entries of this node could not be written; they were not sent.
  case commitFailed(CommitSubject)
  /// The document does not keep entries of this node: those who came by the same invite, or who
  /// have no role of their own, have used up their share of it. Nobody else has the entries.
  case notKept(CommitSubject)
  /// This identity, a member's or this node's own, runs on two machines at once: each takes the
  /// other's place. Reported once.
  case runsTwice(NodeID)
  /// The role of this node has changed.
  case ownRoleChanged(Role)
  /// The role of this node will end soon. `isProvisional`: it came by an invite that no owner has
  /// confirmed yet, and ends with the invite.
  case ownRoleEnds(seconds: UInt64, isProvisional: Bool)
}

/// Why a call has ended for this node.
public enum CallEndReason {
  /// The initiator ended the call for all participants.
  public static let ended = "ended"
  /// No reachable member is left in the call.
  public static let empty = "empty"
  /// A better established call became known, to which the participants of this call move.
  public static let merged = "merged"
  /// The initiator of the call is away, and it takes no newcomers until the initiator is back.
  public static let leaderless = "leaderless"
}
