import MusterBase

/// One direction of a path or of an access link: a bottleneck with a queue, then a delay, with
/// losses before both. (The word is dummynet's.)
struct Pipe: Sendable {
  /// A datagram's way through the pipe.
  struct Passage: Equatable, Sendable {
    var arrival: Instant
    /// The time that the datagram waited behind others at the bottleneck.
    var queueing: Duration
  }

  /// The size of the IPv4 and UDP headers in bytes; headers also pass the bottleneck.
  static let headerBytes = 28

  var conditions: PathConditions {
    didSet { isInBurst = false }
  }
  /// Whether the pipe drops everything: `isBlocked` for a time, `isSevered` for the whole run.
  var isBlocked = false
  var isSevered = false
  private var isInBurst = false
  /// The time at which the bottleneck is free. A change of the rate does not concern datagrams that
  /// are already queued.
  private var busyUntil = Instant.zero
  /// The time at which the present transmission ends at the latest, where the medium is shared.
  private var transmitsUntil = Instant.zero
  private var lastArrival = Instant.zero
  /// The same of audio that goes first.
  private var audioBusyUntil = Instant.zero
  private var lastAudioArrival = Instant.zero

  init(_ conditions: PathConditions) { self.conditions = conditions }

  /// Passes a datagram of `bytes` of UDP payload that is sent now; nil when it is lost.
  mutating func pass(
    _ bytes: Int, as serviceClass: ServiceClass = .standard, at now: Instant, _ prng: inout PRNG
  ) -> Passage? {
    let goesFirst = conditions.audioFirst && serviceClass == .audio
    guard !isBlocked, !isSevered, !losesInBurst(&prng), !prng.happens(conditions.loss),
      let departure = goesFirst
        ? firstDeparture(of: bytes, at: now) : departure(of: bytes, at: now, &prng)
    else { return nil }
    var arrival = departure.at + conditions.delay
    if conditions.jitter > .zero { arrival = arrival + conditions.jitter.scaled(by: prng.unit()) }
    // A reordered datagram does not update `lastArrival`, so later datagrams can overtake it.
    if prng.happens(conditions.reordering) {
      arrival = arrival + conditions.reorderingDelay
    } else if goesFirst {
      lastAudioArrival = max(arrival, lastAudioArrival)
      arrival = lastAudioArrival
    } else {
      lastArrival = max(arrival, lastArrival)
      arrival = lastArrival
    }
    return Passage(arrival: arrival, queueing: departure.queueing)
  }

  private mutating func losesInBurst(_ prng: inout PRNG) -> Bool {
    guard conditions.burstStart > 0 else { return false }
    if prng.chance(isInBurst ? conditions.burstEnd : conditions.burstStart) { isInBurst.toggle() }
    return isInBurst
  }

  private mutating func departure(
    of bytes: Int, at now: Instant, _ prng: inout PRNG
  ) -> (at: Instant, queueing: Duration)? {
    guard let rate = conditions.kilobitsPerSecond else { return (now, .zero) }
    var begins = max(busyUntil, now)
    guard begins - now <= conditions.queueLimit else { return nil }
    if let contention = conditions.contention, begins >= transmitsUntil || busyUntil < now {
      begins = begins + Self.wait(contention, &prng)
      transmitsUntil = begins + Contention.longest
    }
    busyUntil = begins + Self.time(of: bytes, at: rate)
    return (busyUntil, begins - now)
  }

  /// The departure of audio that goes first; everything else waits for it.
  private mutating func firstDeparture(
    of bytes: Int, at now: Instant
  ) -> (at: Instant, queueing: Duration)? {
    guard let rate = conditions.kilobitsPerSecond else { return (now, .zero) }
    let begins = max(audioBusyUntil, now)
    guard begins - now <= conditions.queueLimit else { return nil }
    let time = Self.time(of: bytes, at: rate)
    audioBusyUntil = begins + time
    busyUntil = max(busyUntil, now) + time
    return (audioBusyUntil, begins - now)
  }

  private static func time(of bytes: Int, at kilobitsPerSecond: Int) -> Duration {
    let bits = Int64(bytes + headerBytes) * 8
    return .nanoseconds(bits * 1_000_000 / Int64(max(kilobitsPerSecond, 1)))
  }

  /// The wait for the medium, until a transmission succeeds.
  private static func wait(_ contention: Contention, _ prng: inout PRNG) -> Duration {
    var total = Duration.zero
    var mean = contention.wait
    for _ in 0...Contention.mostFailures {
      total = total + mean.scaled(by: -Math.log(max(prng.unit(), 1e-9)))
      guard prng.happens(contention.failures) else { break }
      mean = mean * 2
    }
    return total
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
