import MusterBase

extension LinkEngine {
  /// The times and rates of links. The defaults are the protocol's; others are for tests.
  ///
  /// WireGuard's where it has them (`device/constants.go`).
  public struct Configuration: Sendable, Equatable {
    /// The initiator of a session begins the next one after this.
    public var rekeyAfter: Duration = .seconds(120)
    /// The responder does so if the initiator has not: after a crossed handshake each side may
    /// believe that it is the responder.
    public var rekeyAsResponderAfter: Duration = .seconds(150)
    /// A session neither seals nor opens any more.
    public var rejectAfter: Duration = .seconds(180)
    /// Until an unanswered initiation is followed by another; doubles up to `handshakeRetryLimit`.
    /// WireGuard waits 5 s from the start, which a caller at a door does not.
    public var handshakeRetry: Duration = .milliseconds(250)
    public var handshakeRetryLimit: Duration = .seconds(5)
    /// Part of the waiting time by which it varies, so that many nodes do not speak at once.
    public var handshakeJitter = 0.1
    public var handshakeGiveUp: Duration = .seconds(90)
    /// A responder forgets a session that the initiator has not used by then.
    public var confirmWithin: Duration = .seconds(30)
    /// Of two that open at once, the smaller id answers nothing for so long: its own initiation
    /// will be answered, unless that way is blocked.
    public var tieBreakPatience: Duration = .seconds(1)
    /// Something is sent at least this often, give or take `keepaliveJitter` of it.
    public var keepalive: Duration = .seconds(15)
    public var keepaliveJitter = 0.2
    /// A link on which nothing has been heard asks the peer again and again to answer. Members ping
    /// each other more often than this, so that it tells of a bad or broken way, and finds the
    /// moment when it is whole again.
    public var silenceProbeAfter: Duration = .seconds(5)
    public var silenceProbeInterval: Duration = .seconds(2)
    /// A link on which nothing has been heard is closed.
    public var silenceLimit: Duration = .seconds(45)
    /// Initiations without a cookie that are worked on; more are answered with a cookie.
    public var handshakesPerSecondBeforeCookies = 50.0
    /// Initiations with a valid cookie that are worked on: about a tenth of a core.
    public var handshakesPerSecondWithCookies = 200.0
    public var cookieLifetime: Duration = .seconds(120)
    /// A challenge without an answer for so long may be for a session that the peer has lost.
    public var challengeInterval: Duration = .seconds(1)
    /// A link heard within this time is not looked for elsewhere when discovery names an address.
    public var quietBeforeProbe: Duration = .seconds(3)
    /// A peer heard within this time directly is not followed to a way through a neighbour.
    public var quietBeforeRelayed: Duration = .milliseconds(100)
    /// No answer to a challenge says more than this of how long a path is.
    public var longestRoundTrip: Duration = .seconds(1)
    /// Two ways to a peer are compared no more often than this.
    public var comparisonInterval: Duration = .seconds(5)

    public init() {}
  }
}

/// Why a link ended.
public enum LinkCloseReason: String, Sendable {
  /// The peer ended it.
  case left
  /// Nothing was heard for too long, or no new session could be made.
  case timedOut
  /// The peer has started anew.
  case replaced
  /// This node ended it.
  case local
}

/// How often what went wrong, and what was done about it.
public struct LinkCounters: Sendable, Equatable {
  /// No kind of datagram of the link, or the wrong length for its kind.
  public var malformed: UInt64 = 0
  /// Handshake messages whose first MAC is of no open channel.
  public var wrongMAC: UInt64 = 0
  /// Second MACs that are not zero and of no cookie of ours.
  public var wrongCookie: UInt64 = 0
  /// Handshake messages that do not decrypt, or whose author does not own the static key.
  public var unverifiable: UInt64 = 0
  /// Initiations meant for an earlier run of this node, responses from another run of the peer.
  public var wrongBoot: UInt64 = 0
  public var replayedInitiations: UInt64 = 0
  /// Initiations left unanswered because this node's own goes first.
  public var tieBreaks: UInt64 = 0
  /// Initiations with a cookie beyond the rate that is worked on.
  public var flooded: UInt64 = 0
  /// No room for one more link or channel.
  public var refused: UInt64 = 0
  /// Data, responses and cookies for an index that nobody has.
  public var unknownIndex: UInt64 = 0
  /// Data that do not decrypt.
  public var forged: UInt64 = 0
  public var replayedData: UInt64 = 0
  /// Data under a session past its time.
  public var expired: UInt64 = 0
  /// Authentic payloads of no known kind or form.
  public var unknownPayloads: UInt64 = 0
  /// Path responses that nobody asked for.
  public var strayPathResponses: UInt64 = 0
  public var handshakesGivenUp: UInt64 = 0

  public var initiationsSent: UInt64 = 0
  public var responsesSent: UInt64 = 0
  public var cookiesSent: UInt64 = 0
  public var cookiesReceived: UInt64 = 0
  public var challengesSent: UInt64 = 0
  public var keepalivesSent: UInt64 = 0
  public var sessionsMade: UInt64 = 0

  public init() {}
}
