import MusterBase
import MusterWire

/// What this node passes on for others: bytes a second in all, the same for each pair of those that
/// have something to say at the moment.
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
    /// What the pair may send at once.
    var credit = RelayBudget.burst * RelayBudget.largestShare
    var refilledAt: Instant
    var askedAt: Instant
    var bytes: UInt64 = 0
    var lastAt = Instant.zero
  }

  /// 4 Mbit/s: two pairs that see each other in both directions at the middle layer.
  private static let bytesPerSecond = 500_000.0
  private static let burst = 250_000.0
  /// No pair has more than half of it, so that another that begins finds room.
  private static let largestShare = 0.5
  /// Of all of it the part that is shared out: the rest makes up for pairs that come and go.
  private static let shared = 0.98
  /// However many pairs there are, a picture's worth of datagrams gets through now and then.
  private static let smallestBurst = 4.0 * 1200
  private static let pairLimit = 256
  /// A pair that has been silent for longer leaves its share to the others.
  private static let activeFor = Duration.seconds(1)
  private static let countInterval = Duration.milliseconds(100)

  private var total = TokenBucket(capacity: burst, perSecond: bytesPerSecond)
  private var pairs = PeerTable<Pair, Carried>()
  private var active = 1
  private var countedAt: Instant?
  private var saidThatItIsMuch = false

  package init() {}

  /// Whether so many bytes from one to the other are passed on.
  package mutating func take(
    _ bytes: Int, from a: NodeID, to b: NodeID, in channel: ChannelID, at now: Instant
  ) -> Bool {
    let pair = Pair(a, b, in: channel)
    if pairs.index(of: pair) == nil {
      if pairs.count >= Self.pairLimit { forgetQuietest() }
      pairs[pair] = Carried(refilledAt: now, askedAt: now)
      countedAt = nil
    }
    count(at: now)
    let amount = Double(bytes)
    let share = min(Self.largestShare, Self.shared / Double(active))
    let hasCredit =
      pairs.update(pair) { carried in
        let elapsed = max(now - carried.refilledAt, .zero).inSeconds
        let credit = carried.credit + elapsed * share * Self.bytesPerSecond
        carried.credit = min(max(Self.burst * share, Self.smallestBurst), credit)
        carried.refilledAt = max(now, carried.refilledAt)
        carried.askedAt = carried.refilledAt
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

  /// How many pairs share the budget at the moment.
  private mutating func count(at now: Instant) {
    if let countedAt, now - countedAt < Self.countInterval { return }
    countedAt = now
    active = max(1, pairs.count { now - $0.value.askedAt < Self.activeFor })
  }

  private mutating func forgetQuietest() {
    let quietest = pairs.min { $0.value.askedAt < $1.value.askedAt }
    if let quietest { pairs[quietest.key] = nil }
  }

  /// Whether others are to be preferred: from when half of the budget is gone until nearly all of
  /// it is there again.
  package mutating func isMuch(at now: Instant) -> Bool {
    let fill = total.fill(at: now)
    saidThatItIsMuch = saidThatItIsMuch ? fill < 0.9 : fill < 0.5
    return saidThatItIsMuch
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
  public let channel: ChannelID
  public let first: NodeID
  public let second: NodeID
  /// Payload passed on in both directions since it began.
  public let bytes: UInt64
}
