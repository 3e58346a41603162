/// When a part of a node next has work, and what for: the host calls `tick` then.
public struct Wake: Hashable, Comparable, Sendable {
  /// What is due, for logs and statistics of a node that wakes too often.
  public enum Reason: String, Comparable, Sendable, CaseIterable {
    /// An announcement, a rendezvous or a candidate probe.
    case discovery
    /// A handshake, a rekey, a keepalive or the end of a silent link.
    case link
    /// A ping that measures a path.
    case path
    /// The end of a drained session, or a key to offer again.
    case association
    /// The search for relays, or for a direct path.
    case relaying
    /// This node's own duties as a rendezvous.
    case rendezvous
    /// Keyframes held back, and the reports, subscriptions and repairs of media.
    case media
    /// Gossip, failure detection and the call of a channel.
    case channel
    /// A key to offer again, or a peer's standing to check.
    case peer

    public static func < (a: Reason, b: Reason) -> Bool { a.rawValue < b.rawValue }
  }

  public var at: Instant
  public var reason: Reason

  public init(at: Instant, reason: Reason) {
    self.at = at
    self.reason = reason
  }

  /// Nil when nothing is due.
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
