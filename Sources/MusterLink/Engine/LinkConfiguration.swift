import MusterBase

extension LinkEngine {
  /// Timers and rates of links. The defaults are the protocol's values; other values are for tests.
  ///
  /// Where WireGuard defines a value, the default is the same (whitepaper section 6.1).
  public struct Configuration: Sendable, Equatable {
    /// The time after which the initiator of a session starts the next handshake.
    public var rekeyAfter: Duration = .seconds(120)
    /// The time after which the responder starts a handshake if the initiator has not: after
    /// crossed handshakes both sides may consider themselves the responder.
    public var rekeyAsResponderAfter: Duration = .seconds(150)
    /// The time after which a session is no longer used, in either direction.
    public var rejectAfter: Duration = .seconds(180)
    /// The interval before the first retry of an unanswered initiation; the interval doubles up to
    /// `handshakeRetryLimit`. WireGuard starts at 5 s, which is too long for a node that joins a
    /// call.
    public var handshakeRetry: Duration = .milliseconds(250)
    /// The longest retry interval.
    public var handshakeRetryLimit: Duration = .seconds(5)
    /// The relative jitter of retry intervals, which spreads nodes that start together.
    public var handshakeJitter = 0.1
    /// The time after which an unanswered handshake is abandoned.
    public var handshakeGiveUp: Duration = .seconds(90)
    /// The time after which a responder discards a session that the initiator has not confirmed.
    public var confirmWithin: Duration = .seconds(30)
    /// On crossed handshakes, the period in which the node with the smaller id ignores the peer's
    /// initiation. The peer answers the other initiation instead, unless that direction is blocked.
    public var tieBreakPatience: Duration = .seconds(1)
    /// The time since the last sent datagram after which a keepalive is sent, varied by
    /// `keepaliveJitter`.
    public var keepalive: Duration = .seconds(15)
    /// The relative jitter of the keepalive interval.
    public var keepaliveJitter = 0.2
    /// The silence after which a peer is challenged. The failure detector usually pings a neighbour
    /// more often, so silence indicates a bad or broken path; the challenges detect the recovery of
    /// the path.
    public var silenceProbeAfter: Duration = .seconds(5)
    /// The interval between challenges to a silent peer.
    public var silenceProbeInterval: Duration = .seconds(2)
    /// The time without any received datagram after which a link is closed.
    public var silenceLimit: Duration = .seconds(45)
    /// The rate of initiations without a cookie that are processed, per second; initiations above
    /// this rate are answered with a cookie.
    public var handshakesPerSecondBeforeCookies = 50.0
    /// The rate of initiations with a valid cookie that are processed, per second; the load is
    /// about a tenth of a core.
    public var handshakesPerSecondWithCookies = 200.0
    /// The age up to which an initiator uses a cookie, and the interval at which a responder
    /// replaces its cookie secret.
    public var cookieLifetime: Duration = .seconds(120)
    /// The time without a response to a challenge after which the peer is offered a new session,
    /// because the peer may have lost the current session.
    public var challengeInterval: Duration = .seconds(1)
    /// The minimum silence before a link is probed when discovery reports another address.
    public var quietBeforeProbe: Duration = .seconds(3)
    /// The minimum silence of a direct path before the link follows its peer to a relayed path.
    public var quietBeforeRelayed: Duration = .milliseconds(100)
    /// The longest round trip assumed for a path to which a link moves, because a suspended peer
    /// may have delayed its response.
    public var longestRoundTrip: Duration = .seconds(1)
    /// The time for a sign of life over the path in use, after which a path that answered a
    /// comparison is preferred: a neighbour is usually heard every few hundred milliseconds.
    public var comparisonPatience: Duration = .seconds(1)
    /// The minimum interval between two comparisons of paths to one peer.
    public var comparisonInterval: Duration = .seconds(5)
    /// The minimum interval between two comparisons with the same address if the first was
    /// complete.
    public var repeatedComparisonInterval: Duration = .seconds(30)
    /// The capabilities that this node offers in handshakes.
    public var capabilities: LinkCapabilities = [
      .congestionFeedback, .redundantAudio, .longAudioPackets,
    ]

    /// Creates the protocol's default configuration.
    public init() {}
  }
}

/// Extensions of the link protocol, each of which is in force on a session if both ends offer it
/// (PROTOCOL.md section 6).
public struct LinkCapabilities: OptionSet, Sendable {
  public let rawValue: UInt32

  public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Each end reports the arrivals of the other end's packets.
  public static let congestionFeedback = LinkCapabilities(rawValue: 1 << 0)
  /// Each end takes audio with copies of earlier packets (RFC 2198).
  public static let redundantAudio = LinkCapabilities(rawValue: 1 << 1)
  /// Each end takes audio in packets of several frames.
  public static let longAudioPackets = LinkCapabilities(rawValue: 1 << 2)
}

/// The reason why a link was closed.
public enum LinkCloseReason: String, Sendable {
  /// The peer closed the link.
  case left
  /// No datagram arrived for too long, or no new session could be established.
  case timedOut = "timed-out"
  /// The peer has restarted.
  case replaced
  /// This node closed the link.
  case local
}

/// Counters of rejected datagrams, one per reason, and of messages sent.
public struct LinkCounters: Sendable, Equatable {
  /// Datagrams of wrong length, or of a kind that links do not use.
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
  /// Initiations ignored because this node's own initiation takes precedence.
  public var tieBreaks: UInt64 = 0
  /// Initiations with a valid cookie beyond the rate limit.
  public var flooded: UInt64 = 0
  /// Links and channel keys refused: a table is full, or the peer, its key or the route is not
  /// usable.
  public var refused: UInt64 = 0
  /// Transport packets, responses and cookie replies with an unknown index.
  public var unknownIndex: UInt64 = 0
  /// Transport packets that fail authentication.
  public var forged: UInt64 = 0
  /// Transport packets with a counter received before.
  public var replayedData: UInt64 = 0
  /// Transport packets of an expired session.
  public var expired: UInt64 = 0
  /// Authentic payloads of unknown kind or malformed.
  public var unknownPayloads: UInt64 = 0
  /// Path responses without a matching challenge.
  public var strayPathResponses: UInt64 = 0
  /// Handshakes abandoned without an answer, or because the peer's key is not usable.
  public var handshakesGivenUp: UInt64 = 0

  /// Initiations sent, including retries.
  public var initiationsSent: UInt64 = 0
  /// Handshake responses sent, including responses to repeated initiations.
  public var responsesSent: UInt64 = 0
  /// Cookie replies sent to initiations above the rate limit.
  public var cookiesSent: UInt64 = 0
  /// Cookie replies accepted.
  public var cookiesReceived: UInt64 = 0
  /// Path challenges sent; a path comparison counts as two.
  public var challengesSent: UInt64 = 0
  /// Moves of established links to another path.
  public var pathsChanged: UInt64 = 0
  /// Keepalives sent, including keepalives that confirm a new session.
  public var keepalivesSent: UInt64 = 0
  /// Sessions established, including sessions that replace another in rekeying.
  public var sessionsMade: UInt64 = 0

  /// Creates counters that are all zero.
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
      ("pathsChanged", pathsChanged),
      ("keepalivesSent", keepalivesSent),
      ("sessionsMade", sessionsMade),
    ]
  }
}
