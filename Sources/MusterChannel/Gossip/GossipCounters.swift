import MusterBase

/// Counters of one channel's gossip: entries and comparisons, and each kind of misbehaviour.
public struct GossipCounters: Equatable, Sendable {
  /// Entries sent to neighbours, repeats included.
  public var entriesSent: UInt64 = 0
  /// Entries that were new and kept, those of this node included.
  public var entriesTaken: UInt64 = 0
  /// Entries received that were already known.
  public var entriesRepeated: UInt64 = 0
  /// Entries received that retention did not keep: older than a kept entry, or beyond a limit.
  public var entriesSuperseded: UInt64 = 0
  /// Comparisons begun by this node.
  public var digestsSent: UInt64 = 0
  /// Digests received that equal this node's: nothing to reconcile.
  public var digestsEqual: UInt64 = 0
  /// Digests received that differ from this node's: the documents are compared by ranges.
  public var digestsDifferent: UInt64 = 0
  /// Range summaries sent while reconciling.
  public var rangesSent: UInt64 = 0

  /// Entries, requests and comparisons that exceeded a neighbour's budget.
  public var overBudget: UInt64 = 0
  /// Entries that do not decode.
  public var malformed: UInt64 = 0
  /// Entries whose signature is not that of the named author for this channel.
  public var forged: UInt64 = 0
  /// Entries that `Rights` does not admit, such as those by authors without a grant.
  public var notAdmitted: UInt64 = 0
  /// Entries by quarantined authors.
  public var ofQuarantined: UInt64 = 0

  /// Creates counters that are all zero.
  public init() {}
}

extension GossipCounters: CounterSet {
  public var counted: [(name: String, value: UInt64)] {
    [
      ("entriesSent", entriesSent),
      ("entriesTaken", entriesTaken),
      ("entriesRepeated", entriesRepeated),
      ("entriesSuperseded", entriesSuperseded),
      ("digestsSent", digestsSent),
      ("digestsEqual", digestsEqual),
      ("digestsDifferent", digestsDifferent),
      ("rangesSent", rangesSent),
      ("overBudget", overBudget),
      ("malformed", malformed),
      ("forged", forged),
      ("notAdmitted", notAdmitted),
      ("ofQuarantined", ofQuarantined),
    ]
  }
}
