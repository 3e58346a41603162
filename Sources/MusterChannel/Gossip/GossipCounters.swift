/// What the gossip of one channel did, and how often others were wrong; each way has its own.
public struct GossipCounters: Equatable, Sendable {
  public var entriesSent: UInt64 = 0
  public var entriesTaken: UInt64 = 0
  /// Known already.
  public var entriesRepeated: UInt64 = 0
  /// Older than what is known, or beyond a bound.
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
  /// Of an author of whom no owner has spoken.
  public var notAdmitted: UInt64 = 0
  /// Of an author who contradicted itself.
  public var ofQuarantined: UInt64 = 0

  public init() {}
}
