import MusterBase

/// Identifies a path: a route to one peer.
public struct PathID: Hashable, Comparable, Sendable {
  /// The peer.
  public let peer: NodeID
  /// The route to it.
  public let route: Route

  public init(peer: NodeID, route: Route) {
    self.peer = peer
    self.route = route
  }

  public static func < (a: PathID, b: PathID) -> Bool {
    a.peer == b.peer ? a.route < b.route : a.peer < b.peer
  }
}

/// The measured state of one path, over all links that use it.
public struct Path: Sendable {
  /// Whether the peer is known to receive at the far end (RFC 9000 section 8.2).
  public enum Validation: Equatable, Sendable {
    /// Datagrams of the peer arrived over it; an attacker may have redirected them.
    case unvalidated
    /// A challenge was sent at this time and has not been answered.
    case validating(since: Instant)
    /// A challenge or a handshake was last answered over it at this time.
    case validated(at: Instant)
    /// A challenge was not answered within `Path.validationTimeout`.
    case failed
  }

  /// Sealed datagrams in one direction.
  public struct Traffic: Equatable, Sendable {
    /// Their number.
    public internal(set) var datagrams: UInt64 = 0
    /// Bytes of UDP payload.
    public internal(set) var bytes: UInt64 = 0
    /// When the last one was sent or received.
    public internal(set) var lastAt: Instant?
    /// The 64-bit packet number of the last one, within its session.
    public internal(set) var lastPacketNumber: UInt64?

    mutating func count(_ bytes: Int, number: UInt64, at now: Instant) {
      datagrams &+= 1
      self.bytes &+= UInt64(bytes)
      lastAt = now
      lastPacketNumber = number
    }
  }

  /// Three times the initial probe timeout of RFC 9002 section 6.2.2, as RFC 9000 section 8.2.4
  /// recommends.
  public static let validationTimeout = Duration.seconds(3)
  /// A longer sample answers a ping from before a suspend, and is ignored.
  static let longestRoundTrip = Duration.seconds(10)

  /// Nil before the first sample.
  public private(set) var roundTrip: RoundTripTime?
  /// How regularly the peer is received over the path.
  public internal(set) var liveness: PathLiveness
  /// What this node sent over it.
  public internal(set) var sent = Traffic()
  /// What this node received over it.
  public internal(set) var received = Traffic()
  /// When the next ping is due, which measures the round trip; nil while no association uses the
  /// path.
  public internal(set) var nextPingAt: Instant?
  /// When the current uninterrupted use began; nil while no link uses it.
  public private(set) var usedSince: Instant?
  /// Links that use it.
  private(set) var users = 0
  private var challengedAt: Instant?
  private(set) var validatedAt: Instant?
  /// When it was last in use or had traffic; the entry idle for longest is evicted first.
  private(set) var touchedAt: Instant

  init(at now: Instant) {
    liveness = PathLiveness(at: now)
    touchedAt = now
  }

  /// The state of validation at this time.
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
