import MusterBase

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
  /// The Lamport counter of the call's first claim; of concurrent calls, the call with the smallest
  /// counter stays.
  public var order: UInt64

  /// Describes a call; `term` counts from 1.
  public init(id: CallID, initiator: NodeID, startedAt: UInt64, term: UInt32, order: UInt64) {
    self.id = id
    self.initiator = initiator
    self.startedAt = startedAt
    self.term = term
    self.order = order
  }

  /// Whether `a` stays when both calls are active in one channel: the call with the smaller `order`
  /// stays, and ids break ties.
  static func precedes(_ a: CallInfo, _ b: CallInfo) -> Bool {
    a.order != b.order ? a.order < b.order : a.id < b.id
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

  /// `participants` must be sorted by id; `byPresence` holds the same members by seniority.
  public init(info: CallInfo, participants: [NodeID], byPresence: [NodeID]) {
    self.info = info
    self.participants = participants
    self.byPresence = byPresence
  }
}
