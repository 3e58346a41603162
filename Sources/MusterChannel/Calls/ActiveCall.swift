import MusterBase

/// How well a call is established, as its entries show. Of concurrent calls, the best established
/// one stays: people are in it, whereas the claim of a newcomer is made in ignorance.
public enum CallStanding: UInt8, Comparable, Sendable {
  /// The initiator had not compared documents with any neighbour.
  case blind = 0
  /// The initiator had compared documents with a neighbour, which knew of no call, or has waited in
  /// the call for a while.
  case informed = 1
  /// A member other than its first initiator has been in it together with another.
  case joined = 2
  /// Two members say that they have been in it together for a while, or another member has taken
  /// it over.
  case lasting = 3

  public static func < (a: CallStanding, b: CallStanding) -> Bool { a.rawValue < b.rawValue }
}

/// The identity of a call and its initiator.
public struct CallInfo: Equatable, Hashable, Sendable {
  /// 128 random bits, drawn by the member that started the call; kept across hand-overs.
  public var id: CallID
  /// The member that started the call, or the last member that took it over.
  public var initiator: NodeID
  /// The start of the call in milliseconds since 1970, by the first initiator's wall clock; for
  /// display only.
  public var startedAt: UInt64
  /// The initiator's term: 1 at the start of the call, one more after every hand-over.
  public var term: UInt32
  /// The Lamport counter of the call's first claim.
  public var order: UInt64
  /// How well the call is established.
  public var standing: CallStanding

  /// Describes a call; `term` counts from 1.
  public init(
    id: CallID, initiator: NodeID, startedAt: UInt64, term: UInt32, order: UInt64,
    standing: CallStanding
  ) {
    self.id = id
    self.initiator = initiator
    self.startedAt = startedAt
    self.term = term
    self.order = order
    self.standing = standing
  }

  /// Whether `a` stays when both calls are active in one channel: the better established call
  /// stays; of two that are equally well established, the one with the smaller `order`; and ids
  /// break ties.
  public static func precedes(_ a: CallInfo, _ b: CallInfo) -> Bool {
    if a.standing != b.standing { return a.standing > b.standing }
    return a.order != b.order ? a.order < b.order : a.id < b.id
  }
}

/// A call with its participants; empty only in the `callLeft` event of the last participant.
public struct ActiveCall: Equatable, Sendable {
  /// The call's id, current initiator and term.
  public var info: CallInfo
  /// The participants, sorted by id.
  public var participants: [NodeID]
  /// The participants by seniority (longest present first), which is the order of succession.
  public var byPresence: [NodeID]
  /// Whether a participant may lead the call: its initiator, or one that may take it over. Without,
  /// the call displaces no other.
  public var isLed: Bool

  /// `participants` must be sorted by id; `byPresence` holds the same members by seniority.
  public init(
    info: CallInfo, participants: [NodeID], byPresence: [NodeID], isLed: Bool = true
  ) {
    self.info = info
    self.participants = participants
    self.byPresence = byPresence
    self.isLed = isLed
  }
}
