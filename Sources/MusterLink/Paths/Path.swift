import MusterBase

/// Identifies a path: a route to one peer.
public struct PathID: Hashable, Comparable, Sendable {
  /// The peer at the other end.
  public let peer: NodeID
  /// The route to the peer.
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
  /// The state of path validation: whether the peer is known to receive datagrams over the path
  /// (RFC 9000 section 8.2).
  public enum Validation: Equatable, Sendable {
    /// No challenge has been sent over the path; an attacker may have redirected datagrams that
    /// arrived over the path.
    case unvalidated
    /// A challenge was sent at this time and has not been answered.
    case validating(since: Instant)
    /// A challenge or a handshake was last answered over the path at this time.
    case validated(at: Instant)
    /// The last challenge was not answered within `Path.validationTimeout`, and no earlier
    /// challenge was answered.
    case failed
  }

  /// The traffic of sealed datagrams in one direction.
  public struct Traffic: Equatable, Sendable {
    /// The number of datagrams.
    public internal(set) var datagrams: UInt64 = 0
    /// The number of bytes of UDP payload.
    public internal(set) var bytes: UInt64 = 0
    /// The time at which the last datagram was sent or received.
    public internal(set) var lastAt: Instant?
    /// The 64-bit packet number of the last datagram, within its session.
    public internal(set) var lastPacketNumber: UInt64?

    mutating func count(_ bytes: Int, number: UInt64, at now: Instant) {
      datagrams &+= 1
      self.bytes &+= UInt64(bytes)
      lastAt = now
      lastPacketNumber = number
    }
  }

  /// The timeout of a challenge: three times the initial probe timeout of RFC 9002 section 6.2.2,
  /// as RFC 9000 section 8.2.4 recommends.
  public static let validationTimeout = Duration.seconds(3)
  /// The upper limit of accepted round-trip samples; a longer sample results from a ping that was
  /// sent before this host was suspended.
  static let longestRoundTrip = Duration.seconds(10)

  /// The round trip over the path; nil before the first sample.
  public private(set) var roundTrip: RoundTripTime?
  /// The regularity of arrivals from the peer over the path.
  public internal(set) var liveness: PathLiveness
  /// The traffic that this node sent over the path.
  public internal(set) var sent = Traffic()
  /// The traffic that this node received over the path.
  public internal(set) var received = Traffic()
  /// The time of the next ping, which measures the round trip; nil while no association uses the
  /// path.
  public internal(set) var nextPingAt: Instant?
  /// The time at which the current uninterrupted use began; nil while no link uses the path.
  public private(set) var usedSince: Instant?
  /// The number of links that use the path.
  private(set) var users = 0
  private var challengedAt: Instant?
  private(set) var validatedAt: Instant?
  /// The time at which the path was last in use or had traffic; the path idle for longest is
  /// evicted first.
  private(set) var touchedAt: Instant

  init(at now: Instant) {
    liveness = PathLiveness(at: now)
    touchedAt = now
  }

  /// The validation state at time `now`.
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
