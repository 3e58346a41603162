import MusterBase

/// The identity of a call and its initiator.
public struct CallInfo: Equatable, Hashable, Sendable {
  /// 128 random bits, drawn by the member that started the call; kept across hand-overs.
  public var id: CallID
  /// The member that started it, or took it over last.
  public var initiator: NodeID
  /// Milliseconds since 1970 by the first initiator's wall clock; for display only.
  public var startedAt: UInt64
  /// 1 from the start, one more with every hand-over.
  public var term: UInt32
  /// The Lamport counter of its first claim: of concurrent calls the smallest stays.
  public var order: UInt64

  /// A call as its claims describe it; `term` counts from 1.
  public init(id: CallID, initiator: NodeID, startedAt: UInt64, term: UInt32, order: UInt64) {
    self.id = id
    self.initiator = initiator
    self.startedAt = startedAt
    self.term = term
    self.order = order
  }

  /// Of two calls of a channel the one that started earlier stays; ids settle ties.
  static func precedes(_ a: CallInfo, _ b: CallInfo) -> Bool {
    a.order != b.order ? a.order < b.order : a.id < b.id
  }
}

/// A call with at least one participant.
public struct ActiveCall: Equatable, Sendable {
  /// The call, its current initiator and term.
  public var info: CallInfo
  /// In the order of their ids.
  public var participants: [NodeID]
  /// The same members by seniority, the longest present first: the order of succession.
  public var byPresence: [NodeID]

  /// `participants` sorted by id, and the same members by seniority.
  public init(info: CallInfo, participants: [NodeID], byPresence: [NodeID]) {
    self.info = info
    self.participants = participants
    self.byPresence = byPresence
  }
}
