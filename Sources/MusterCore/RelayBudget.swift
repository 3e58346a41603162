import MusterBase
import MusterWire

/// The budget for relaying: bytes a second in total, shared equally by the pairs that are sending.
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
    /// The burst that a pair may send; not all of it before the demand of the others is known.
    var credit = RelayBudget.firstCredit
    var refilledAt: Instant
    var askedAt: Instant
    /// Bytes that it wanted to send since the last count, and bytes a second before that.
    var asked = 0.0
    var demand = 0.0
    var bytes: UInt64 = 0
    var lastAt = Instant.zero
  }

  /// 4 Mbit/s: two pairs that see each other in both directions at the middle layer.
  private static let bytesPerSecond = 500_000.0
  private static let burst = 250_000.0
  /// No pair has more than half of it, so that another that begins finds room.
  private static let largestShare = 0.5
  /// The fraction of the budget that is shared out: the rest absorbs pairs that come and go.
  private static let shared = 0.98
  /// However many pairs there are, one frame's worth of datagrams, four of 1200 bytes, gets through
  /// now and then.
  private static let smallestBurst = 4.0 * 1200
  private static let pairLimit = 256
  private static let firstCredit = 25_000.0
  private static let countInterval = Duration.milliseconds(250)

  private var total = TokenBucket(capacity: burst, perSecond: bytesPerSecond)
  private var pairs = PeerTable<Pair, Carried>()
  /// The part of all that a pair may have.
  private var share = RelayBudget.largestShare
  private var countedAt = Instant.zero
  private var reportedHighLoad = false

  package init() {}

  /// Whether this number of bytes from one to the other is relayed.
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

  /// Divides the budget so that nobody who wants little gets less, and those who want more get the
  /// same (max-min fairness: Bertsekas and Gallager, Data Networks, 6.5.2).
  private mutating func divide(at now: Instant) {
    let seconds = max((now - countedAt).inSeconds, 0.001)
    countedAt = now
    var demands: [Double] = []
    for position in 0..<pairs.count {
      // The previous demand counts for half, which smooths bursts.
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

  /// Whether others are to be preferred: from when half of the budget is gone until nearly all of
  /// it is there again.
  package mutating func isLoadHigh(at now: Instant) -> Bool {
    let fill = total.fill(at: now)
    reportedHighLoad = reportedHighLoad ? fill < 0.9 : fill < 0.5
    return reportedHighLoad
  }

  /// The pairs for which something was passed on within the last seconds.
  package func carried(at now: Instant) -> [RelayedPair] {
    pairs.compactMap { pair, carried in
      guard carried.bytes > 0, now - carried.lastAt < Self.recent else { return nil }
      return RelayedPair(
        channel: pair.channel, first: pair.first, second: pair.second, bytes: carried.bytes)
    }
  }

  private static let recent = Duration.seconds(3)
}

/// Two members whose packets this node passes on.
public struct RelayedPair: Equatable, Sendable {
  /// The channel of both members.
  public let channel: ChannelID
  /// The member with the smaller id.
  public let first: NodeID
  /// The member with the larger id.
  public let second: NodeID
  /// Payload passed on in both directions since it began.
  public let bytes: UInt64
}
