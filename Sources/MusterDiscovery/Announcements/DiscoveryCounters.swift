/// How often discovery did, refused or left out something; each way of being wrong has its own.
public struct DiscoveryCounters: Equatable, Sendable {
  /// Rounds of announces formed, each for one channel.
  public var announced: UInt64 = 0
  /// Peers proven to be live at an address, again or for the first time.
  public var found: UInt64 = 0
  /// Challenges sent.
  public var challenged: UInt64 = 0
  /// Challenges answered with an echo.
  public var answered: UInt64 = 0

  /// From an address to which nothing may be sent: multicast, broadcast, port 0.
  public var badSource: UInt64 = 0
  /// Neither an announce nor a challenge.
  public var otherKind: UInt64 = 0
  /// No open channel's key opens it.
  public var unreadable: UInt64 = 0
  /// Opened, but not laid out as it should be.
  public var malformed: UInt64 = 0
  /// This node's own announce, heard again.
  public var ownAnnouncement: UInt64 = 0
  /// Not above the author's highest counter, or of a boot that another has replaced.
  public var replayed: UInt64 = 0
  /// Not signed by the author that it names.
  public var forged: UInt64 = 0
  /// Carried an echo that this node did not give to that author at that address lately.
  public var badEcho: UInt64 = 0
  /// The same announce from the same address had its challenge already.
  public var alreadyChallenged: UInt64 = 0
  /// The author's or the node's budget for challenges is used up.
  public var overBudget: UInt64 = 0
  /// A challenge to somebody else, to an earlier boot, or about an announce not lately made.
  public var foreignChallenge: UInt64 = 0
  /// A challenge answered before, or beyond the budget for answers.
  public var repeatedChallenge: UInt64 = 0

  /// Records of a rendezvous that were not asked for.
  public var foreignRecords: UInt64 = 0
  /// Members of whom a rendezvous or a DHT told.
  public var learned: UInt64 = 0
  /// Announces from a DHT that were not looked at: the budget for them was used up.
  public var unread: UInt64 = 0

  public init() {}
}
