import MusterBase

/// Counters of one channel's gossip: entries, anti-entropy, and each kind of misbehaviour.
public struct GossipCounters: Equatable, Sendable {
  /// The number of entries sent to neighbours, including retransmissions.
  public var entriesSent: UInt64 = 0
  /// The number of entries that were new and kept, including this node's own entries.
  public var entriesTaken: UInt64 = 0
  /// The number of received entries that were already known.
  public var entriesRepeated: UInt64 = 0
  /// The number of entries that retention did not keep: older than a kept entry, or beyond a limit.
  public var entriesSuperseded: UInt64 = 0
  /// The number of digests sent, each to begin an anti-entropy round or to confirm equal documents.
  public var digestsSent: UInt64 = 0
  /// The number of received digests that equal this node's digest, so nothing is reconciled.
  public var digestsEqual: UInt64 = 0
  /// The number of received digests that differ from this node's digest, so ranges are compared.
  public var digestsDifferent: UInt64 = 0
  /// The number of range summaries sent while reconciling.
  public var rangesSent: UInt64 = 0

  /// The number of times that entries, requests or anti-entropy exceeded a neighbour's budget.
  public var overBudget: UInt64 = 0
  /// The number of received entries that did not decode.
  public var malformed: UInt64 = 0
  /// The number of received entries without a valid signature by the named author for this channel.
  public var forged: UInt64 = 0
  /// The number of received entries that `Rights` did not admit, such as those by authors without a
  /// grant.
  public var notAdmitted: UInt64 = 0
  /// The number of entries by authors that were already quarantined.
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
