import MusterBase

/// Counters of datagrams that could not take a relayed path.
public struct RelayCounters: Equatable, Sendable {
  /// Datagrams of this node that were dropped: the link to their relay was relayed itself by then,
  /// or the datagram was too large for an envelope.
  public var unsent: UInt64 = 0
  /// Envelopes from peers that were dropped: malformed, for or from an unknown member, from or to a
  /// link that is relayed itself, or to a node that declines relaying.
  public var refused: UInt64 = 0
  /// Envelopes that this node did not relay because the budget of their pair, or of all pairs, was
  /// spent.
  public var overBudget: UInt64 = 0

  /// Creates counters that are all zero.
  public init() {}
}

extension RelayCounters: CounterSet {
  public var counted: [(name: String, value: UInt64)] {
    [("unsent", unsent), ("refused", refused), ("overBudget", overBudget)]
  }
}
