import MusterBase

extension LinkEngine {
  /// Timers and rates of links. The defaults are the protocol's; others are for tests.
  ///
  /// WireGuard's values where it defines them (whitepaper section 6.1).
  public struct Configuration: Sendable, Equatable {
    /// The initiator of a session starts the next handshake after this time.
    public var rekeyAfter: Duration = .seconds(120)
    /// The responder does so if the initiator has not: after crossed handshakes both sides may
    /// believe that they are the responder.
    public var rekeyAsResponderAfter: Duration = .seconds(150)
    /// A session is no longer used after this time, in either direction.
    public var rejectAfter: Duration = .seconds(180)
    /// The first retry of an unanswered initiation; the interval doubles up to
    /// `handshakeRetryLimit`. WireGuard starts at 5 s, too long for somebody who joins a call.
    public var handshakeRetry: Duration = .milliseconds(250)
    /// The longest retry interval.
    public var handshakeRetryLimit: Duration = .seconds(5)
    /// Relative jitter of retry intervals, which spreads nodes that start together.
    public var handshakeJitter = 0.1
    /// An unanswered handshake ends after this time.
    public var handshakeGiveUp: Duration = .seconds(90)
    /// A responder discards a session that the initiator has not confirmed by then.
    public var confirmWithin: Duration = .seconds(30)
    /// On crossed handshakes, the node with the smaller id ignores the peer's initiation for this
    /// time, because the peer will answer its own, unless that direction is blocked.
    public var tieBreakPatience: Duration = .seconds(1)
    /// The longest silence before a keepalive, with jitter of `keepaliveJitter`.
    public var keepalive: Duration = .seconds(15)
    /// Relative jitter of the keepalive interval.
    public var keepaliveJitter = 0.2
    /// A peer that has been silent for this time is challenged. Members ping each other more often
    /// than this, so silence indicates a bad or broken path; the challenges detect its recovery.
    public var silenceProbeAfter: Duration = .seconds(5)
    /// The interval of those challenges.
    public var silenceProbeInterval: Duration = .seconds(2)
    /// A link without any received datagram for this time is closed.
    public var silenceLimit: Duration = .seconds(45)
    /// Initiations without a cookie that are processed per second; beyond, they are answered with a
    /// cookie.
    public var handshakesPerSecondBeforeCookies = 50.0
    /// Initiations with a valid cookie that are processed per second: about a tenth of a core.
    public var handshakesPerSecondWithCookies = 200.0
    /// How long a cookie is valid.
    public var cookieLifetime: Duration = .seconds(120)
    /// A challenge unanswered for this time may belong to a session that the peer has lost.
    public var challengeInterval: Duration = .seconds(1)
    /// A link with traffic within this time is not probed when discovery reports another address.
    public var quietBeforeProbe: Duration = .seconds(3)
    /// A link with direct traffic within this time does not follow its peer to a relayed path.
    public var quietBeforeRelayed: Duration = .milliseconds(100)
    /// Round trips measured by challenges are clamped to this.
    public var longestRoundTrip: Duration = .seconds(1)
    /// The minimum interval between two comparisons of paths to one peer.
    public var comparisonInterval: Duration = .seconds(5)

    /// The protocol's values.
    public init() {}
  }
}

/// Why a link was closed.
public enum LinkCloseReason: String, Sendable {
  /// The peer closed it.
  case left
  /// No datagram for too long, or no new session could be made.
  case timedOut
  /// The peer has restarted.
  case replaced
  /// This node closed it.
  case local
}

/// Counts datagrams that were rejected, one counter per reason, and messages sent.
public struct LinkCounters: Sendable, Equatable {
  /// Datagrams of unknown kind or wrong length.
  public var malformed: UInt64 = 0
  /// Handshake messages whose first MAC matches no open channel key.
  public var wrongMAC: UInt64 = 0
  /// Handshake messages whose second MAC is neither zero nor made with a cookie of this node.
  public var wrongCookie: UInt64 = 0
  /// Handshake messages that do not decrypt, or whose author does not own the static key.
  public var unverifiable: UInt64 = 0
  /// Initiations for an earlier run of this node, and responses from another run of the peer.
  public var wrongBoot: UInt64 = 0
  /// Initiations that were answered before.
  public var replayedInitiations: UInt64 = 0
  /// Initiations ignored because this node's own takes precedence.
  public var tieBreaks: UInt64 = 0
  /// Initiations with a valid cookie beyond the rate limit.
  public var flooded: UInt64 = 0
  /// Links and channels refused for lack of space.
  public var refused: UInt64 = 0
  /// Transport packets, responses and cookie replies with an unknown index.
  public var unknownIndex: UInt64 = 0
  /// Transport packets that do not decrypt.
  public var forged: UInt64 = 0
  /// Transport packets with a counter received before.
  public var replayedData: UInt64 = 0
  /// Transport packets of an expired session.
  public var expired: UInt64 = 0
  /// Authentic payloads of unknown kind or malformed.
  public var unknownPayloads: UInt64 = 0
  /// Path responses without a matching challenge.
  public var strayPathResponses: UInt64 = 0
  /// Handshakes that were never answered.
  public var handshakesGivenUp: UInt64 = 0

  /// Initiations sent.
  public var initiationsSent: UInt64 = 0
  /// Responses sent.
  public var responsesSent: UInt64 = 0
  /// Cookie replies sent.
  public var cookiesSent: UInt64 = 0
  /// Cookie replies accepted.
  public var cookiesReceived: UInt64 = 0
  /// Path challenges sent.
  public var challengesSent: UInt64 = 0
  /// Keepalives sent.
  public var keepalivesSent: UInt64 = 0
  /// Sessions established.
  public var sessionsMade: UInt64 = 0

  /// All zero.
  public init() {}
}

extension LinkCounters: CounterSet {
  public var counted: [(name: String, value: UInt64)] {
    [
      ("malformed", malformed),
      ("wrongMAC", wrongMAC),
      ("wrongCookie", wrongCookie),
      ("unverifiable", unverifiable),
      ("wrongBoot", wrongBoot),
      ("replayedInitiations", replayedInitiations),
      ("tieBreaks", tieBreaks),
      ("flooded", flooded),
      ("refused", refused),
      ("unknownIndex", unknownIndex),
      ("forged", forged),
      ("replayedData", replayedData),
      ("expired", expired),
      ("unknownPayloads", unknownPayloads),
      ("strayPathResponses", strayPathResponses),
      ("handshakesGivenUp", handshakesGivenUp),
      ("initiationsSent", initiationsSent),
      ("responsesSent", responsesSent),
      ("cookiesSent", cookiesSent),
      ("cookiesReceived", cookiesReceived),
      ("challengesSent", challengesSent),
      ("keepalivesSent", keepalivesSent),
      ("sessionsMade", sessionsMade),
    ]
  }
}
