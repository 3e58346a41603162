import MusterBase

/// What the network does to datagrams in one direction between two hosts.
public struct PathConditions: Equatable, Sendable {
  /// Added to every datagram.
  public var delay = Duration.microseconds(300)
  /// Up to this much more, evenly spread; the order is kept.
  public var jitter = Duration.zero
  /// The part of datagrams lost, each by itself.
  public var loss = 0.0
  /// The chance, per datagram, that a burst begins in which all are lost (Gilbert's model).
  public var burstStart = 0.0
  /// The chance, per datagram, that a burst of losses ends.
  public var burstEnd = 1.0
  /// The part of datagrams that arrives twice, the second time up to `duplicateDelay` later.
  public var duplication = 0.0
  /// Upper bound of the second copy's extra delay, evenly distributed from 0.
  public var duplicateDelay = Duration.milliseconds(50)
  /// The part of datagrams held back by `reorderingDelay`, so that later ones overtake them.
  public var reordering = 0.0
  /// Extra delay of a datagram that is held back.
  public var reorderingDelay = Duration.milliseconds(20)
  /// The part of datagrams that arrives altered: some bits turned over, or the end missing.
  public var corruption = 0.0
  /// The bottleneck; nil for none.
  public var kilobitsPerSecond: Int?
  /// How long a datagram may wait before the bottleneck; those that would wait longer are dropped.
  public var queueLimit = Duration.milliseconds(200)

  /// A wired LAN: 300 µs of delay, no faults and no bottleneck.
  public init() {}
}

/// One direction between two hosts, with what it remembers.
struct Path: Sendable {
  /// IPv4 and UDP headers, which take up the bottleneck too.
  static let headerBytes = 28

  var conditions: PathConditions {
    didSet { isInBurst = false }
  }
  /// Whether nothing passes in this direction, for a while or for good.
  var isBlocked = false
  var isSevered = false
  private var isInBurst = false
  private var busyUntil = Instant.zero
  private var lastArrival = Instant.zero

  init(_ conditions: PathConditions) { self.conditions = conditions }

  /// When a datagram sent now arrives; nil when it is lost.
  mutating func arrival(of bytes: Int, at now: Instant, _ prng: inout PRNG) -> Instant? {
    guard !isBlocked, !isSevered, !losesInBurst(&prng), !prng.happens(conditions.loss) else {
      return nil
    }
    guard let leaves = departure(of: bytes, at: now) else { return nil }
    var arrival = leaves + conditions.delay
    if conditions.jitter > .zero { arrival = arrival + conditions.jitter.scaled(by: prng.unit()) }
    // The one held back leaves no mark, so that others need not wait for it.
    if prng.happens(conditions.reordering) { return arrival + conditions.reorderingDelay }
    lastArrival = max(arrival, lastArrival)
    return lastArrival
  }

  private mutating func losesInBurst(_ prng: inout PRNG) -> Bool {
    guard conditions.burstStart > 0 else { return false }
    if prng.chance(isInBurst ? conditions.burstEnd : conditions.burstStart) { isInBurst.toggle() }
    return isInBurst
  }

  private mutating func departure(of bytes: Int, at now: Instant) -> Instant? {
    guard let rate = conditions.kilobitsPerSecond else { return now }
    let begins = max(busyUntil, now)
    guard begins - now <= conditions.queueLimit else { return nil }
    let bits = Int64(bytes + Self.headerBytes) * 8
    busyUntil = begins + .nanoseconds(bits * 1_000_000 / Int64(max(rate, 1)))
    return busyUntil
  }
}

extension PRNG {
  /// As `chance`, without a draw for what never happens.
  mutating func happens(_ probability: Double) -> Bool {
    probability > 0 && chance(probability)
  }

  /// A duration evenly drawn from a range.
  mutating func duration(_ low: Duration, _ high: Duration) -> Duration {
    low + (high - low).scaled(by: unit())
  }
}

extension Duration {
  func scaled(by factor: Double) -> Duration {
    .nanoseconds(Int64(Double(wholeNanoseconds) * factor))
  }
}
