import MusterBase
import MusterCongestion
import MusterWire

/// The byte rate for relaying, shared fairly by the pairs of members that are sending.
package struct RelayBudget: Sendable {
  private struct Pair: Comparable, Sendable {
    let channel: ChannelID
    let first: NodeID
    let second: NodeID

    init(_ a: NodeID, _ b: NodeID, in channel: ChannelID) {
      self.channel = channel
      (first, second) = a < b ? (a, b) : (b, a)
    }

    static func < (a: Pair, b: Pair) -> Bool {
      if a.channel != b.channel { return a.channel < b.channel }
      return a.first == b.first ? a.second < b.second : a.first < b.first
    }
  }

  private struct Carried: Sendable {
    /// The number of bytes that the pair may send now; initially low, since the pair's demand is
    /// not yet known.
    var credit = RelayBudget.firstCredit
    var refilledAt: Instant
    var askedAt: Instant
    /// The number of bytes that the pair offered since the last division, and the pair's smoothed
    /// demand in bytes per second.
    var asked = 0.0
    var demand = 0.0
    var bytes: UInt64 = 0
    var lastAt = Instant.zero
  }

  /// The total rate of 4 Mbit/s, enough for two pairs that exchange video in both directions at the
  /// middle layer.
  private static let bytesPerSecond = 500_000.0
  private static let burst = 250_000.0
  /// The maximum fraction for one pair, which leaves room for a new pair.
  private static let largestShare = 0.5
  /// The rate that one of a pair may send if the other one sends as much; a relay has no queue that
  /// would show that it is exceeded.
  static let rateOfOneDirection = DataRate(
    bytes: bytesPerSecond * largestShare / 2, over: .seconds(1))
  /// The fraction of the budget that is divided; the rest absorbs the arrival of new pairs.
  private static let shared = 0.98
  /// The minimum burst of a pair in bytes: one frame of four datagrams of 1200 bytes, so that a
  /// frame is relayed from time to time with any number of pairs.
  private static let smallestBurst = 4.0 * 1200
  private static let pairLimit = 256
  private static let firstCredit = 25_000.0
  private static let countInterval = Duration.milliseconds(250)

  private var total = TokenBucket(capacity: burst, perSecond: bytesPerSecond)
  private var pairs = PeerTable<Pair, Carried>()
  /// The fraction of the budget that each pair may use.
  private var share = RelayBudget.largestShare
  private var countedAt = Instant.zero
  private var reportedHighLoad = false

  package init() {}

  /// Charges `bytes` sent from `a` to `b` against the pair's credit and the total budget. Returns
  /// false and charges nothing if either is insufficient.
  package mutating func take(
    _ bytes: Int, from a: NodeID, to b: NodeID, in channel: ChannelID, at now: Instant
  ) -> Bool {
    let pair = Pair(a, b, in: channel)
    if pairs.index(of: pair) == nil {
      if pairs.count >= Self.pairLimit { forgetQuietest() }
      pairs[pair] = Carried(refilledAt: now, askedAt: now)
    }
    if now - countedAt >= Self.countInterval { divide(at: now) }
    let amount = Double(bytes)
    let share = share
    let hasCredit =
      pairs.update(pair) { carried in
        let elapsed = max(now - carried.refilledAt, .zero).inSeconds
        let credit = carried.credit + elapsed * share * Self.bytesPerSecond
        carried.credit = min(max(Self.burst * share, Self.smallestBurst), credit)
        carried.refilledAt = max(now, carried.refilledAt)
        carried.askedAt = carried.refilledAt
        carried.asked += amount
        return carried.credit >= amount
      } ?? false
    guard hasCredit, total.take(amount, at: now) else { return false }
    _ = pairs.update(pair) {
      $0.credit -= amount
      $0.bytes &+= UInt64(bytes)
      $0.lastAt = now
    }
    return true
  }

  /// Divides the budget by max-min fairness: small demands are met in full, and larger demands get
  /// equal shares (Bertsekas and Gallager, Data Networks, 6.5.2).
  private mutating func divide(at now: Instant) {
    let seconds = max((now - countedAt).inSeconds, 0.001)
    countedAt = now
    var demands: [Double] = []
    for position in 0..<pairs.count {
      // The previous demand has half of the weight, to smooth bursts.
      let latest = pairs[at: position].asked / seconds
      pairs[at: position].demand = (pairs[at: position].demand + latest) / 2
      pairs[at: position].asked = 0
      demands.append(pairs[at: position].demand)
    }
    var rest = Self.bytesPerSecond * Self.shared
    var level = rest
    for (position, demand) in demands.sorted().enumerated() {
      level = rest / Double(demands.count - position)
      if demand >= level { break }
      rest -= demand
    }
    share = min(Self.largestShare, level / Self.bytesPerSecond)
  }

  private mutating func forgetQuietest() {
    let quietest = pairs.min { $0.value.askedAt < $1.value.askedAt }
    if let quietest { pairs[quietest.key] = nil }
  }

  /// Whether other relays should be preferred: true once more than half of the burst is used, and
  /// false again once no more than a tenth is used (hysteresis).
  package mutating func isLoadHigh(at now: Instant) -> Bool {
    let fill = total.fill(at: now)
    reportedHighLoad = reportedHighLoad ? fill < 0.9 : fill < 0.5
    return reportedHighLoad
  }

  /// The pairs for which packets were relayed within the last 3 s.
  package func carried(at now: Instant) -> [RelayedPair] {
    pairs.compactMap { pair, carried in
      guard carried.bytes > 0, now - carried.lastAt < Self.recent else { return nil }
      return RelayedPair(
        channel: pair.channel, first: pair.first, second: pair.second, bytes: carried.bytes)
    }
  }

  private static let recent = Duration.seconds(3)
}

/// A pair of members whose packets this node relays.
public struct RelayedPair: Equatable, Sendable {
  /// The channel of both members.
  public let channel: ChannelID
  /// The member with the smaller id.
  public let first: NodeID
  /// The member with the larger id.
  public let second: NodeID
  /// The payload bytes relayed in both directions since relaying for the pair began.
  public let bytes: UInt64
}
