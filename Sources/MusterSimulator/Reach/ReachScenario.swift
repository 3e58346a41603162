import MusterBase

/// The parameters of a run, drawn from the seed before the run begins.
struct ReachScenario: Sendable {
  static let fewestNodes = 2
  static let mostNodes = 9

  let count: Int
  /// The NAT types of all homes: first the members' homes, then those of the dedicated rendezvous
  /// servers.
  let kinds: [NATKind]
  /// The homes of the dedicated rendezvous servers.
  let rendezvousHomes: [Int]
  /// The member that also serves as a rendezvous server, at a fixed public address; nil for none.
  let offering: Int?
  /// The initial home of each member.
  let indices: [Int]
  /// The kinds of changes in this run.
  let changes: [ReachChange]
  /// The times of the changes since the start of the run; convergence is measured from the last
  /// change.
  let changeTimes: [Duration]
  /// Whether the run ends only after a long stable period, to detect links that break later.
  let isLong: Bool
  let conditions: Conditions
  /// Whether each member's host has an IPv6 address beside its IPv4 address, but for gaps.
  let hasV6: [Bool]

  /// The quality of paths between homes.
  struct Conditions: Sendable {
    var longestDelay: Duration
    var loss: Double
    /// The fraction of datagrams lost after the last change.
    var lossAfterwards: Double
  }

  init(_ options: ReachOptions, _ prng: inout PRNG) {
    // Small networks are drawn most often, because the cost of a run grows quadratically with the
    // number of nodes.
    let spread = Self.mostNodes - Self.fewestNodes + 1
    let drawn = Self.fewestNodes + min(prng.below(spread), prng.below(spread))
    let count = min(max(options.nodes ?? drawn, 2), ReachOptions.nodeLimit)
    self.count = count
    let homes = 2 + prng.below(count + 1)
    var kinds = (0..<homes).map { _ in Self.kind(&prng) }
    let servers = 1 + prng.below(2)
    let isOffered = prng.chance(0.3)
    let open = kinds.indices.filter { kinds[$0] == .none }
    offering = isOffered && !open.isEmpty ? prng.below(count) : nil
    rendezvousHomes = (0..<servers).map { homes + $0 }
    kinds += rendezvousHomes.map { _ in .none }
    self.kinds = kinds
    var positions = (0..<count).map { _ in prng.below(homes) }
    if let offering { positions[offering] = prng.one(of: open) }
    self.indices = positions
    let some = ReachChange.allCases.filter { _ in prng.chance(0.6) }
    let one = prng.one(of: ReachChange.allCases)
    changes = some.isEmpty ? [one] : some
    let isSlow = prng.chance(0.08)
    let first = Duration.seconds(3)
    let span = prng.duration(.seconds(2), isSlow ? .seconds(150) : .seconds(20))
    let times = (0..<(1 + prng.below(10))).map { _ in first + prng.duration(.zero, span) }
    changeTimes = times.sorted()
    isLong = prng.chance(0.1)
    let loss = prng.chance(0.5) ? 0.1 * prng.unit() : 0
    conditions = Conditions(
      longestDelay: prng.duration(.milliseconds(1), .milliseconds(100)),
      loss: options.loss ?? loss, lossAfterwards: min(options.loss ?? loss, 0.01))
    let v6Share = prng.one(of: [0, 0.8, 1])
    hasV6 = (0..<count).map { _ in prng.chance(v6Share) }
  }

  private static func kind(_ prng: inout PRNG) -> NATKind {
    prng.one(
      of: [
        .none, .none, .full, .full, .preserving, .preserving, .preserving, .random, .random,
        .blocked,
      ])
  }

  /// A random NAT type for a router that replaces one of the given type.
  static func otherKind(than kind: NATKind, _ prng: inout PRNG) -> NATKind {
    prng.one(of: NATKind.allCases.filter { $0 != .none && $0 != kind })
  }
}
