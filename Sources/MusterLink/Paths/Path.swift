import MusterBase

/// Names one path: a route to one peer.
public struct PathID: Hashable, Comparable, Sendable {
  public let peer: NodeID
  public let route: Route

  public init(peer: NodeID, route: Route) {
    self.peer = peer
    self.route = route
  }

  public static func < (a: PathID, b: PathID) -> Bool {
    a.peer == b.peer ? a.route < b.route : a.peer < b.peer
  }
}

/// What this node knows of one path, measured over every link that uses it.
public struct Path: Sendable {
  /// Whether the peer is known to be at the far end (RFC 9000 section 8.2).
  public enum Validation: Equatable, Sendable {
    /// Datagrams of the peer came over it, which an attacker may have redirected.
    case unvalidated
    /// A challenge was sent at this time and is not answered yet.
    case validating(since: Instant)
    /// A challenge or a handshake was answered over it, the last time at this instant.
    case validated(at: Instant)
    /// The challenge went unanswered for `Path.validationTimeout`.
    case failed
  }

  /// Sealed datagrams of one direction.
  public struct Traffic: Equatable, Sendable {
    public internal(set) var datagrams: UInt64 = 0
    /// UDP payload, in bytes.
    public internal(set) var bytes: UInt64 = 0
    /// When the last one went or came.
    public internal(set) var lastAt: Instant?
    /// The 64-bit packet number of the last one, of the session that it was sealed under.
    public internal(set) var lastPacketNumber: UInt64?

    mutating func count(_ bytes: Int, number: UInt64, at now: Instant) {
      datagrams &+= 1
      self.bytes &+= UInt64(bytes)
      lastAt = now
      lastPacketNumber = number
    }
  }

  /// Three times the initial probe timeout of RFC 9002 section 6.2.2, as RFC 9000 section 8.2.4 asks.
  public static let validationTimeout = Duration.seconds(3)
  /// An older sample answers a ping from before the machine slept.
  static let longestRoundTrip = Duration.seconds(10)

  /// Nil before the first sample.
  public private(set) var roundTrip: RoundTripTime?
  public internal(set) var liveness: PathLiveness
  public internal(set) var sent = Traffic()
  public internal(set) var received = Traffic()
  /// When a ping is due that measures the round trip; nil while no association uses the path.
  public internal(set) var nextPingAt: Instant?
  /// Since when it is in use without interruption; nil while no link leads over it.
  public private(set) var usedSince: Instant?
  /// Links that lead over it.
  private(set) var users = 0
  private var challengedAt: Instant?
  private(set) var validatedAt: Instant?
  /// When it was last in use or had traffic: the path that was idle for longest is forgotten first.
  private(set) var touchedAt: Instant

  init(at now: Instant) {
    liveness = PathLiveness(at: now)
    touchedAt = now
  }

  public func validation(at now: Instant) -> Validation {
    if let validatedAt { return .validated(at: validatedAt) }
    guard let challengedAt else { return .unvalidated }
    return now - challengedAt < Self.validationTimeout ? .validating(since: challengedAt) : .failed
  }

  mutating func challenged(at now: Instant) {
    challengedAt = now
    touchedAt = now
  }

  mutating func validated(at now: Instant) { validatedAt = now }

  mutating func measured(_ sample: Duration) {
    guard sample >= .zero, sample < Self.longestRoundTrip else { return }
    guard roundTrip != nil else {
      roundTrip = RoundTripTime(first: sample)
      return
    }
    roundTrip?.update(with: sample)
  }

  mutating func sent(_ bytes: Int, number: UInt64, at now: Instant) {
    sent.count(bytes, number: number, at: now)
    touchedAt = now
  }

  mutating func received(_ bytes: Int, number: UInt64, at now: Instant) {
    received.count(bytes, number: number, at: now)
    liveness.heard(at: now)
    touchedAt = now
  }

  mutating func begin(at now: Instant) {
    if users == 0 { usedSince = now }
    users += 1
  }

  mutating func end(at now: Instant) {
    users -= 1
    touchedAt = max(touchedAt, now)
    if users == 0 { (usedSince, nextPingAt) = (nil, nil) }
  }
}
