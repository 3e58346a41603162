import MusterBase
import MusterWire

/// A way to a member through a neighbour of both.
struct Detour: Equatable, Sendable {
  let channel: ChannelID
  let relay: NodeID
  let target: NodeID
}

/// The ways through others that this node has used, each with a number that stands for it where an
/// address is asked for: so a link's path leads over a relay, or away from it, like over any other.
struct Detours: Sendable {
  private var known = PeerTable<UInt64, Detour>()
  private var last: UInt64 = 0
  /// Two for each link; the oldest are forgotten, and made anew when they are used again.
  static let limit = 2 * Limits.links

  subscript(address: Address) -> Detour? { address.detour.flatMap { known[$0] } }

  mutating func address(of detour: Detour) -> Address {
    if let place = known.first(where: { $0.value == detour }) { return .detour(place.key) }
    last += 1
    known[last] = detour
    if known.count > Self.limit { known[known.keys[0]] = nil }
    return .detour(last)
  }
}

/// A member of this node's call to whom nothing gets through.
struct Missing: Sendable {
  /// When the next relay is tried.
  var nextAt: Instant
  var tried: [NodeID]
}

/// Two members whose packets this node passes on.
public struct RelayedPair: Equatable, Sendable {
  public let channel: ChannelID
  public let first: NodeID
  public let second: NodeID
  /// Payload passed on in both directions since it began.
  public let bytes: UInt64
}

/// What this node passes on for others: bytes a second in all, and for each pair.
struct RelayBudget: Sendable {
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
    var share = RelayBudget.share
    var bytes: UInt64 = 0
    var lastAt = Instant.zero
  }

  /// 4 Mbit/s: two pairs that see each other in both directions at the middle layer.
  private var total = TokenBucket(capacity: 250_000, perSecond: 500_000)
  /// No pair takes more than half of it, so that another has its share.
  private static let share = TokenBucket(capacity: 125_000, perSecond: 250_000)
  private static let pairLimit = 256
  private var pairs = PeerTable<Pair, Carried>()
  private var saidThatItIsMuch = false

  /// Whether so many bytes from one to the other are passed on.
  mutating func take(
    _ bytes: Int, from a: NodeID, to b: NodeID, in channel: ChannelID, at now: Instant
  ) -> Bool {
    let pair = Pair(a, b, in: channel)
    if pairs.index(of: pair) == nil {
      if pairs.count >= Self.pairLimit { pairs = PeerTable() }
      pairs[pair] = Carried()
    }
    let amount = Double(bytes)
    guard pairs.update(pair, { $0.share.take(amount, at: now) }) ?? false,
      total.take(amount, at: now)
    else { return false }
    _ = pairs.update(pair) {
      $0.bytes &+= UInt64(bytes)
      $0.lastAt = now
    }
    return true
  }

  /// Whether others are to be preferred: from when half of the budget is gone until nearly all of it
  /// is there again.
  mutating func isMuch(at now: Instant) -> Bool {
    let fill = total.fill(at: now)
    saidThatItIsMuch = saidThatItIsMuch ? fill < 0.9 : fill < 0.5
    return saidThatItIsMuch
  }

  /// The pairs for which something was passed on within the last seconds.
  func carried(at now: Instant) -> [RelayedPair] {
    pairs.compactMap { pair, carried in
      guard carried.bytes > 0, now - carried.lastAt < Self.recent else { return nil }
      return RelayedPair(
        channel: pair.channel, first: pair.first, second: pair.second, bytes: carried.bytes)
    }
  }

  private static let recent = Duration.seconds(3)
}
