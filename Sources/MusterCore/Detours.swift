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

/// What this node passes on for others: bytes a second in all, and for each pair.
struct RelayBudget: Sendable {
  private struct Pair: Comparable, Sendable {
    let first: NodeID
    let second: NodeID

    init(_ a: NodeID, _ b: NodeID) { (first, second) = a < b ? (a, b) : (b, a) }

    static func < (a: Pair, b: Pair) -> Bool {
      a.first == b.first ? a.second < b.second : a.first < b.first
    }
  }

  /// 4 Mbit/s: two pairs that see each other in both directions at the middle layer.
  private var total = TokenBucket(capacity: 250_000, perSecond: 500_000)
  /// No pair takes more than half of it, so that another has its share.
  private static let share = TokenBucket(capacity: 125_000, perSecond: 250_000)
  private static let pairLimit = 256
  private var pairs = PeerTable<Pair, TokenBucket>()

  /// Whether so many bytes from one to the other are passed on.
  mutating func take(_ bytes: Int, from a: NodeID, to b: NodeID, at now: Instant) -> Bool {
    let pair = Pair(a, b)
    if pairs.index(of: pair) == nil {
      if pairs.count >= Self.pairLimit { pairs = PeerTable() }
      pairs[pair] = Self.share
    }
    let amount = Double(bytes)
    guard pairs.update(pair, { $0.take(amount, at: now) }) ?? false else { return false }
    return total.take(amount, at: now)
  }
}
