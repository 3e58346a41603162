import MusterBase
import MusterWire

/// A member of a channel as the others see it, made safe to show.
public struct Member: Equatable, Sendable {
  /// The member's public key.
  public var id: NodeID
  /// The display name, sanitised; the short id when nothing is left of it.
  public var name: String
  /// The role in force; presenter for all members of an open channel.
  public var role: Role
  /// With `inCall` exactly when it is in a call.
  public var flags: MemberFlags
  /// The call that its presence names; nil outside calls.
  public var call: CallID?
  /// The video streams on offer, in ascending order.
  public var streams: [StreamOffer]
  /// Random id of the member's process: a new one means a restart.
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

  /// Whether its presence names a call.
  public var isInCall: Bool { call != nil }

  /// The state from a presence, without parts that contradict each other or the role: nobody speaks
  /// outside a call, or without the right to send audio.
  public init(_ presence: Presence, of id: NodeID, role: Role, settings: ChannelSettings) {
    var flags = presence.flags
    if presence.call == nil { flags.remove(.inCall) } else { flags.insert(.inCall) }
    if presence.call == nil || !Capability.sendAudio.isAllowed(to: role, in: settings) {
      flags.remove(.speaking)
    }
    self.init(
      id: id, name: Self.shownName(presence.name, of: id), role: role, flags: flags,
      call: presence.call?.id, streams: presence.streams.map(Self.usable), bootID: presence.bootID)
  }

  /// A stream under its own name, with all of its layers or, if one cannot be, none: the index of
  /// a layer is also its number.
  private static func usable(_ stream: StreamOffer) -> StreamOffer {
    var stream = stream
    if stream.id <= .screen { stream.name = stream.id.description }
    let isUsable = stream.layers.allSatisfy {
      $0.size.width > 0 && $0.size.height > 0 && $0.framesPerSecond > 0
    }
    if !isUsable { stream.layers = [] }
    return stream
  }

  /// The stream of this number; nil when the member announces none.
  public func stream(_ id: StreamID) -> StreamOffer? { streams.first { $0.id == id } }

  /// Whether frames of the camera can be expected: it is there and not muted.
  public var hasCamera: Bool { stream(.camera).map { !$0.isMuted && !$0.layers.isEmpty } ?? false }

  static func shownName(_ name: String, of id: NodeID) -> String {
    let safe = DisplayText.sanitized(name, limit: Limits.nameBytes)
    return safe.isEmpty ? id.short : safe
  }
}

/// Why a member is gone.
public enum LeaveReason: String, Sendable {
  /// It left in order.
  case left
  /// It stopped answering, and nobody who can be reached hears it.
  case crashed
  /// An owner took away its role, or that of this node, which parts it from everybody.
  case removed
  /// It started again as another process.
  case replaced
}

/// Something that happened in a channel.
public enum ChannelEvent: Equatable, Sendable {
  /// A member became reachable, directly or through others.
  case memberJoined(Member)
  /// The name, role, flags, call or streams of a member changed.
  case memberUpdated(Member)
  /// A member left or cannot be reached any more, with its last state.
  case memberLeft(Member, LeaveReason)
  /// A call is on; those who are in it already are its participants and do not join again.
  case callStarted(ActiveCall)
  /// The call after the member joined.
  case callJoined(ActiveCall, NodeID)
  /// The call after the participant left.
  case callLeft(ActiveCall, NodeID, LeaveReason)
  /// The same call under another initiator.
  case callHandedOver(ActiveCall)
  /// Over, by one of `CallEndReason`.
  case callEnded(CallInfo, reason: String)
  /// A text message is shown; each once, in the one order of all members.
  case message(TextMessage)
  /// Others refuse this node as a member.
  case refused(Refusal)
  /// The owner has changed the channel's key.
  case keyChanged(epoch: UInt32)
  /// Entries of this node could not be written; they were not sent to anyone.
  case commitFailed(CommitSubject)
  /// The role of this node has changed.
  case ownRoleChanged(Role)
}

/// Why a call is over for this node.
public enum CallEndReason {
  /// Its initiator ended it; it never comes back.
  public static let ended = "ended"
  /// No member that can be reached is in it any more.
  public static let empty = "empty"
  /// An earlier call became known, and its participants move over to that.
  public static let merged = "merged"
}
