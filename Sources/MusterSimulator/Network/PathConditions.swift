import MusterBase

/// The path conditions in one direction between two hosts.
public struct PathConditions: Equatable, Sendable {
  /// The fixed delay of every datagram.
  public var delay = Duration.microseconds(300)
  /// The upper bound of the additional random delay, uniformly distributed from 0. Jitter does not
  /// reorder datagrams.
  public var jitter = Duration.zero
  /// The probability of loss, independent for each datagram.
  public var loss = 0.0
  /// The probability, per datagram, that a burst of losses begins (Gilbert model).
  public var burstStart = 0.0
  /// The probability, per datagram, that a burst of losses ends.
  public var burstEnd = 1.0
  /// The fraction of datagrams that arrive twice, the second copy up to `duplicateDelay` later.
  public var duplication = 0.0
  /// The upper bound of the second copy's extra delay, uniformly distributed from 0.
  public var duplicateDelay = Duration.milliseconds(50)
  /// The fraction of datagrams delayed by `reorderingDelay`, so that later datagrams can overtake.
  public var reordering = 0.0
  /// The extra delay of a reordered datagram.
  public var reorderingDelay = Duration.milliseconds(20)
  /// The fraction of datagrams that arrive truncated or with flipped bits.
  public var corruption = 0.0
  /// The rate of the bottleneck in kbit/s, including IP and UDP headers; nil for no bottleneck.
  public var kilobitsPerSecond: Int?
  /// The longest queueing delay at the bottleneck; datagrams that would wait longer are dropped.
  public var queueLimit = Duration.milliseconds(200)

  /// A wired LAN: 300 µs of delay, no faults and no bottleneck.
  public init() {}
}

/// The state of a path in one direction between two hosts.
struct Path: Sendable {
  /// The size of the IPv4 and UDP headers in bytes; headers also pass the bottleneck.
  static let headerBytes = 28

  var conditions: PathConditions {
    didSet { isInBurst = false }
  }
  /// Whether the path drops everything: `isBlocked` for a time, `isSevered` for the whole run.
  var isBlocked = false
  var isSevered = false
  private var isInBurst = false
  private var busyUntil = Instant.zero
  private var lastArrival = Instant.zero

  init(_ conditions: PathConditions) { self.conditions = conditions }

  /// The arrival time of a datagram sent now; nil when it is lost.
  mutating func arrival(of bytes: Int, at now: Instant, _ prng: inout PRNG) -> Instant? {
    guard !isBlocked, !isSevered, !losesInBurst(&prng), !prng.happens(conditions.loss) else {
      return nil
    }
    guard let leaves = departure(of: bytes, at: now) else { return nil }
    var arrival = leaves + conditions.delay
    if conditions.jitter > .zero { arrival = arrival + conditions.jitter.scaled(by: prng.unit()) }
    // A reordered datagram does not update `lastArrival`, so later datagrams can overtake it.
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
  /// Like `chance`, but without a random draw if the probability is 0.
  mutating func happens(_ probability: Double) -> Bool {
    probability > 0 && chance(probability)
  }

  /// Draws a uniformly distributed duration from `low` to `high`.
  mutating func duration(_ low: Duration, _ high: Duration) -> Duration {
    low + (high - low).scaled(by: unit())
  }
}

extension Duration {
  func scaled(by factor: Double) -> Duration {
    .nanoseconds(Int64(Double(wholeNanoseconds) * factor))
  }
}
