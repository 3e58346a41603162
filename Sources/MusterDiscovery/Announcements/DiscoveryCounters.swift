import MusterBase

/// Counters of discovery's actions and of rejected datagrams, one per reason.
public struct DiscoveryCounters: Equatable, Sendable {
  /// Announcements created, each counted once for all its receivers.
  public var announced: UInt64 = 0
  /// Verifications that a peer is live at an address, including repeated verifications.
  public var found: UInt64 = 0
  /// Challenges sent.
  public var challenged: UInt64 = 0
  /// Challenges answered with an echo.
  public var answered: UInt64 = 0

  /// Datagrams from source addresses that cannot be answered: multicast, broadcast, port 0.
  public var badSource: UInt64 = 0
  /// Datagrams of kinds that discovery does not handle.
  public var otherKind: UInt64 = 0
  /// Datagrams that no open channel's key decrypts.
  public var unreadable: UInt64 = 0
  /// Datagrams that were decrypted but are malformed.
  public var malformed: UInt64 = 0
  /// This node's own announcements, received by multicast loopback or from a rendezvous server or a
  /// DHT.
  public var ownAnnouncement: UInt64 = 0
  /// Announcements whose counter is not above the author's highest, or whose run was replaced.
  public var replayed: UInt64 = 0
  /// Announcements whose signature is not by the author named.
  public var forged: UInt64 = 0
  /// Announcements with an echo that was not recently sent to this author at this address.
  public var badEcho: UInt64 = 0
  /// Announcements that were challenged before at the same address.
  public var alreadyChallenged: UInt64 = 0
  /// Announcements not challenged because the budget of the author or of the node is exhausted.
  public var overBudget: UInt64 = 0
  /// Announcements whose signatures were not verified because the budget for that is exhausted.
  public var unverified: UInt64 = 0
  /// Challenges for another node, for an earlier run, or about an announcement that is not recent.
  public var foreignChallenge: UInt64 = 0
  /// Challenges answered before, or beyond the answer budget.
  public var repeatedChallenge: UInt64 = 0

  /// Datagrams of rendezvous records with an unknown token or from an unknown server.
  public var foreignRecords: UInt64 = 0
  /// Announcements from a rendezvous server or a DHT, each with candidate addresses of a peer.
  public var learned: UInt64 = 0
  /// Announcements from the DHT that were skipped because the rate limit for DHT values was
  /// exhausted.
  public var unread: UInt64 = 0

  public init() {}
}

extension DiscoveryCounters: CounterSet {
  public var counted: [(name: String, value: UInt64)] {
    [
      ("announced", announced),
      ("found", found),
      ("challenged", challenged),
      ("answered", answered),
      ("badSource", badSource),
      ("otherKind", otherKind),
      ("unreadable", unreadable),
      ("malformed", malformed),
      ("ownAnnouncement", ownAnnouncement),
      ("replayed", replayed),
      ("forged", forged),
      ("badEcho", badEcho),
      ("alreadyChallenged", alreadyChallenged),
      ("overBudget", overBudget),
      ("unverified", unverified),
      ("foreignChallenge", foreignChallenge),
      ("repeatedChallenge", repeatedChallenge),
      ("foreignRecords", foreignRecords),
      ("learned", learned),
      ("unread", unread),
    ]
  }
}
