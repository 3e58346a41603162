import MusterBase
import MusterCore
import MusterCrypto
import Testing

/// The relaying budget of a member: PROTOCOL.md, section 7.
private struct Laden {
  static let key = ChannelKey.fromName("laden")
  /// The relaying budget in bytes per second; one pair may use half of it.
  static let total = 500_000.0
  static let share = 250_000.0

  var world: CoreWorld
  private var since: Instant

  /// Creates nodes of which the pairs in `cut` cannot reach each other, and runs them for ten
  /// seconds; `excess` is the number of packets of 1000 bytes that each node sends in 20 ms.
  init(_ count: Int, cut: [[Int]], excess: @escaping (Int) -> Int) {
    world = CoreWorld(count)
    world.passes = { from, to, _ in !cut.contains([from, to]) && !cut.contains([to, from]) }
    world.join("laden", Self.key)
    // The pairs are linked first: an exhausted budget has no room for handshakes either.
    world.run(for: .seconds(5))
    world.excess = excess
    world.run(for: .seconds(5))
    since = world.now
  }

  mutating func run(for duration: Duration) {
    since = world.now
    world.run(for: duration)
  }

  /// The relayed bytes per second, of one pair or in total, through whatever relays. Hosts without
  /// excess send nothing of that size of their own.
  func rate(_ pair: [Int]? = nil) -> Double {
    let ends = pair.map { pair in pair.map { world.hosts[$0].address } }
    let relays = world.hosts.indices.filter { world.excess($0) == 0 }
    let relayed = relays.flatMap { world.hosts[$0].sent }.filter { one in
      one.arrivesAt > since && one.datagram.count > 1000 && ends?.contains(one.to) ?? true
    }
    let bytes = relayed.reduce(0) { $0 + $1.datagram.count }
    return Double(bytes) / (world.now - since).inSeconds
  }

  func frames(at index: Int, of other: Int) -> Int {
    let link = world.hosts[index].shown.keys.first { $0.peer == world.id(other) }
    return link.flatMap { world.hosts[index].shown[$0] } ?? 0
  }
}

struct RelayLimitTests {
  @Test func aPairGetsItsShareAndNoMore() {
    // 1 MB/s is wanted, in both directions together.
    var laden = Laden(3, cut: [[0, 2]]) { $0 == 1 ? 0 : 10 }
    laden.run(for: .seconds(10))
    let rate = laden.rate([0, 2])
    // The 10 % are for the overhead of the relaying link and a bucket that was not empty.
    #expect(rate < Laden.share * 1.1, "\(Int(rate)) bytes/s")
    #expect(rate > Laden.share * 0.85, "\(Int(rate)) bytes/s")
  }

  @Test func aGreedyPairTakesNothingFromAnother() {
    var laden = Laden(5, cut: [[0, 1], [3, 4]]) { $0 < 2 ? 10 : 0 }
    let before = [laden.frames(at: 3, of: 4), laden.frames(at: 4, of: 3)]
    laden.run(for: .seconds(10))
    #expect(laden.rate([0, 1]) > Laden.share * 0.8)
    // All frames arrive, at five per second.
    #expect(laden.frames(at: 3, of: 4) - before[0] >= 48)
    #expect(laden.frames(at: 4, of: 3) - before[1] >= 48)
  }

  @Test func allPairsTogetherStayBelowTheTotal() {
    var pairs: [[Int]] = []
    for one in 1..<6 { for other in (one + 1)..<6 { pairs.append([one, other]) } }
    var laden = Laden(6, cut: pairs) { $0 == 0 ? 0 : 4 }
    laden.run(for: .seconds(10))
    let rate = laden.rate()
    #expect(rate < Laden.total * 1.15, "\(Int(rate)) bytes/s")
    // Smaller datagrams take the rest, and what video leaves to retransmissions is not used.
    #expect(rate > Laden.total * 0.6, "\(Int(rate)) bytes/s")
  }

  @Test func aBusyRelayIsSeenAsBefore() {
    var laden = Laden(3, cut: [[0, 2]]) { $0 == 1 ? 0 : 10 }
    let before = laden.frames(at: 0, of: 1)
    laden.run(for: .seconds(10))
    #expect(laden.frames(at: 0, of: 1) - before >= 48)
  }
}
