/// The next deadline of a part of a node, with the reason; the host calls `tick` at that time.
public struct Wake: Hashable, Comparable, Sendable {
  /// The kind of work, for logs and statistics of nodes that wake too often.
  public enum Reason: String, Comparable, Sendable, CaseIterable {
    /// An announcement, a rendezvous request or a candidate probe.
    case discovery
    /// A handshake, a rekey, a keepalive or the end of a silent link.
    case link
    /// A ping that measures a path.
    case path
    /// The end of a draining session, or the next key offer over a restricted session.
    case association
    /// The search for relays, or for a direct path.
    case relaying
    /// The work of this node as a rendezvous server.
    case rendezvous
    /// Deferred keyframes, RTCP reports, subscriptions and retransmission requests.
    case media
    /// A report on the packets that have arrived.
    case congestion
    /// Gossip, failure detection and the call of a channel.
    case channel
    /// The repetition of a key offer, or the check of a peer's membership.
    case peer

    public static func < (a: Reason, b: Reason) -> Bool { a.rawValue < b.rawValue }
  }

  /// The time at which the work is due.
  public var at: Instant
  /// The kind of the work that is due.
  public var reason: Reason

  public init(at: Instant, reason: Reason) {
    self.at = at
    self.reason = reason
  }

  /// Combines a deadline with its reason; nil without a deadline.
  public init?(_ at: Instant?, _ reason: Reason) {
    guard let at else { return nil }
    self.init(at: at, reason: reason)
  }

  public static func < (a: Wake, b: Wake) -> Bool {
    a.at == b.at ? a.reason < b.reason : a.at < b.at
  }
}

/// The earlier of two wakes, either of which may be absent.
public func soonest(_ a: Wake?, _ b: Wake?) -> Wake? {
  guard let a else { return b }
  guard let b else { return a }
  return min(a, b)
}
