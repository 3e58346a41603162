/// Counters of one channel's gossip: entries and comparisons, and each kind of misbehaviour.
public struct GossipCounters: Equatable, Sendable {
  public var entriesSent: UInt64 = 0
  public var entriesTaken: UInt64 = 0
  /// Received although known.
  public var entriesRepeated: UInt64 = 0
  /// Older than a kept entry, or beyond a bound.
  public var entriesSuperseded: UInt64 = 0
  public var digestsSent: UInt64 = 0
  public var digestsEqual: UInt64 = 0
  public var digestsDifferent: UInt64 = 0
  public var rangesSent: UInt64 = 0

  /// More than a neighbour has reason to send.
  public var overBudget: UInt64 = 0
  public var malformed: UInt64 = 0
  /// Not signed by the author that it names, or for another channel.
  public var forged: UInt64 = 0
  /// By an author without any grant.
  public var notAdmitted: UInt64 = 0
  /// By a quarantined author.
  public var ofQuarantined: UInt64 = 0

  public init() {}
}
