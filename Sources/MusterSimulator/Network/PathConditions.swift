import MusterBase

/// A radio medium that others use, too (CSMA/CA in IEEE 802.11): what waits at a station is sent in
/// one transmission as soon as the station gets the medium.
public struct Contention: Equatable, Sendable {
  /// The longest transmission (a common limit of an aggregate, A-MPDU).
  static let longest = Duration.milliseconds(4)
  /// The failures of a transmission in a row before it succeeds; each doubles the wait, as it
  /// doubles the contention window (802.11-2020, section 10.23.2: a window from 15 to 1023 slots).
  static let mostFailures = 6

  /// The mean wait for the medium, exponentially distributed.
  public var wait: Duration
  /// The probability that a transmission fails, and is repeated after a wait.
  public var failures: Double

  package init(wait: Duration, failures: Double) {
    self.wait = wait
    self.failures = failures
  }
}

/// The conditions in one direction of a path between two hosts, or of the access link of a host.
public struct PathConditions: Equatable, Sendable {
  /// The fixed delay of every datagram.
  public var delay = Duration.microseconds(300)
  /// The upper bound of the additional random delay, uniformly distributed from 0. Jitter does not
  /// reorder datagrams.
  public var jitter = Duration.zero
  /// The probability of loss, independent for each datagram.
  public var loss = 0.0
  /// The probability, per datagram, that a burst of losses begins (Gilbert's model). The mean loss
  /// is `burstStart / (burstStart + burstEnd)`, the mean length of a burst `1 / burstEnd`.
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
  /// The other users of the medium; nil for a link of its own. `kilobitsPerSecond` then holds while
  /// the station sends.
  public var contention: Contention?
  /// Whether audio has a queue of its own and goes before all others, as on Wi-Fi (WMM).
  public var audioFirst = false

  /// A wired LAN: 300 µs of delay, no faults and no bottleneck.
  public init() {}

  /// No delay, no faults and no bottleneck.
  public static var ideal: Self {
    var conditions = Self()
    conditions.delay = .zero
    return conditions
  }

  /// The rate that a station with much to send gets, in kbit/s; nil for no bottleneck.
  package var throughput: Int? {
    guard let kilobitsPerSecond, let contention else { return kilobitsPerSecond }
    // The mean number of waits per transmission, each twice as long as the one before.
    var (waits, next) = (0.0, 1.0)
    for _ in 0...Contention.mostFailures {
      waits += next
      next *= 2 * contention.failures
    }
    let cycle = Contention.longest + contention.wait.scaled(by: waits)
    return Int(Double(kilobitsPerSecond) * (Contention.longest / cycle))
  }
}
