import MusterBase
import MusterCore
import MusterCrypto
import Testing

struct RelayBudgetTests {
  private static let (total, pair, direction) = (500_000.0, 250_000.0, 125_000.0)
  private static let longestWait = Duration.milliseconds(300)
  /// What a direction may have sent at once or have waiting, in bytes.
  private static let atOnce = 4_800.0 + direction * 0.3

  /// Offers packets at the given rates for some seconds; returns the bytes accepted from each
  /// direction, and the longest wait of each.
  private func offer(
    _ rates: [(from: Int, to: Int, perSecond: Int)], seconds: Int = 10, _ budget: inout RelayBudget
  ) -> [(bytes: Double, wait: Duration)] {
    let bytes = 1000
    var taken = rates.map { _ in (bytes: 0.0, wait: Duration.zero) }
    var lastLeft = rates.map { _ in Instant.zero }
    // Each millisecond, the packets that are due for each direction arrive.
    for millisecond in 0..<(seconds * 1000) {
      let now = Instant.zero + .seconds(100) + .milliseconds(millisecond)
      for (index, rate) in rates.enumerated() {
        let due = { $0 * rate.perSecond / bytes / 1000 }
        for _ in due(millisecond)..<due(millisecond + 1) {
          let leavesAt = budget.take(
            bytes, from: node(rate.from), to: node(rate.to), in: channel, at: now)
          guard let leavesAt else { continue }
          #expect(leavesAt >= lastLeft[index], "out of order")
          lastLeft[index] = leavesAt
          taken[index].bytes += Double(bytes)
          taken[index].wait = max(taken[index].wait, leavesAt - now)
        }
      }
    }
    return taken
  }

  @Test func aPairGetsHalfOfItAndBothDirectionsShareThat() {
    var budget = RelayBudget()
    // The first 250 ms pass at half of this rate, since the demand is not known yet.
    let alone = offer([(1, 2, 1_000_000)], &budget)[0]
    #expect(alone.bytes <= 10 * Self.pair + 2 * Self.atOnce)
    #expect(alone.bytes >= 9.8 * Self.pair)
    budget = RelayBudget()
    for both in offer([(1, 2, 1_000_000), (2, 1, 1_000_000)], &budget) {
      #expect(both.bytes <= 10 * Self.direction + Self.atOnce)
      #expect(both.bytes >= 10 * Self.direction)
    }
  }

  @Test func whatExceedsTheRateWaitsAndIsThenDropped() {
    var budget = RelayBudget()
    let within = offer([(1, 2, 100_000), (2, 1, 100_000)], seconds: 2, &budget)
    #expect(within.allSatisfy { $0.wait == .zero && $0.bytes == 200_000 })
    budget = RelayBudget()
    let beyond = offer([(1, 2, 150_000), (2, 1, 150_000)], seconds: 5, &budget)
    for one in beyond {
      // A packet of 1000 bytes takes 8 ms at this rate.
      #expect(one.wait <= Self.longestWait && one.wait >= Self.longestWait - .milliseconds(8))
      // Until both demands are known, more is admitted.
      #expect(one.bytes <= 5.2 * Self.direction + Self.atOnce)
    }
  }

  @Test func anotherPairHasItsShareBesideAGreedyOne() {
    var budget = RelayBudget()
    let taken = offer([(1, 2, 10_000_000), (3, 4, 120_000)], &budget)
    #expect(taken[1].bytes == 1_200_000 && taken[1].wait == .zero)
    #expect(taken[0].bytes <= 10 * Self.pair + 2 * Self.atOnce)
  }

  @Test func aModestPairWaitsForNobodyHoweverManyAreGreedy() {
    for greedy in 1...4 {
      var budget = RelayBudget()
      let pairs = (1...greedy).map { (2 * $0 + 1, 2 * $0 + 2, 2_000_000) }
      let taken = offer([(1, 2, 90_000)] + pairs, &budget)
      #expect(taken[0].bytes == 900_000 && taken[0].wait == .zero, "\(greedy) greedy pairs")
    }
  }

  @Test func manyWhoWantLittleTakeNothingFromOneWhoWantsMuch() {
    var budget = RelayBudget()
    let many = (1...60).map { (2 * $0 + 1, 2 * $0 + 2, 1000) }
    let taken = offer([(1, 2, 240_000)] + many, &budget)
    #expect(taken[0].bytes >= 0.99 * 2_400_000)
  }

  /// One member that sends to many takes no more than another that sends to one.
  @Test func moreReceiversMakeNoLargerShare() {
    var budget = RelayBudget()
    let many = (3...30).map { (1, $0, 1_000_000) }
    // The others lose some of the first second, while the demand is not known yet.
    let taken = offer(many + [(2, 40, 120_000), (50, 51, 120_000)], &budget)
    #expect(taken[28].bytes >= 1_100_000 && taken[29].bytes >= 1_100_000)
    let ofMany = taken.prefix(28).map(\.bytes)
    let shared = ofMany.reduce(0, +)
    #expect(shared >= 0.9 * 10 * (Self.total - 240_000))
    #expect((ofMany.max() ?? 0) < 1.5 * shared / 28)
  }

  @Test func thereIsATotalHoweverManyPairsThereAre() {
    for count in [5, 20, 600] {
      var budget = RelayBudget()
      // 600 directions exceed the number remembered; a forgotten one gets no larger share.
      let taken = offer(
        (0..<count).map { (2 * $0 + 1, 2 * $0 + 2, 3_000_000 / count) }, seconds: 5, &budget)
      let sum = taken.reduce(0) { $0 + $1.bytes }
      #expect(sum <= 250_000 + 5 * Self.total, "\(count) pairs")
      #expect(sum >= 0.9 * 5 * Self.total, "\(count) pairs")
    }
  }

  @Test func aClockThatStandsOrGoesBackGivesNothing() {
    var budget = RelayBudget()
    let now = Instant.zero + .seconds(100)
    func take(_ at: Instant) -> Instant? {
      budget.take(1000, from: node(1), to: node(2), in: channel, at: at)
    }
    // 4800 bytes leave at once, and 37,500 wait.
    let taken = (0..<1000).map { _ in take(now) }
    #expect(taken.count { $0 == now } == 4)
    #expect(taken.count { $0 != nil } == 42)
    let (earlier, later) = (take(.zero), take(now + .milliseconds(8)))
    #expect(earlier == nil)
    #expect(later != nil)
  }

  @Test func theLoadIsHighFromThreeQuartersUntilHalfIsFreeAgain() {
    var budget = RelayBudget()
    let atFirst = budget.isLoadHigh(at: .zero)
    #expect(!atFirst)
    // The time of the last offer below.
    var end = Instant.zero + .seconds(109)
    /// Offers this many bytes per second in all, for a second.
    func isHigh(with total: Int) -> Bool {
      end = end + .seconds(1)
      for millisecond in 0..<1000 {
        let now = end + (.milliseconds(millisecond) - .seconds(1))
        for pair in 1...4 {
          _ = budget.take(
            total / 4000, from: node(2 * pair), to: node(2 * pair + 1), in: channel, at: now)
        }
      }
      return budget.isLoadHigh(at: end)
    }
    #expect([300_000, 420_000, 300_000, 200_000].map(isHigh) == [false, true, true, false])
    let again = isHigh(with: 420_000)
    #expect(again)
    // Nobody sends any more.
    let quiet = (1...3).map { budget.isLoadHigh(at: end + .seconds(2 * $0)) }
    #expect(quiet.last == false)
  }

  @Test func relayedTrafficIsReportedForAsLongAsItFlows() throws {
    var budget = RelayBudget()
    let now = Instant.zero + .seconds(100)
    #expect(budget.carried(at: now).isEmpty)
    _ = budget.take(700, from: node(2), to: node(1), in: channel, at: now)
    _ = budget.take(300, from: node(1), to: node(2), in: channel, at: now + .seconds(1))
    // Refused packets do not count as carried.
    let refused = budget.take(200_000, from: node(1), to: node(2), in: channel, at: now)
    #expect(refused == nil)
    let carried = budget.carried(at: now + .seconds(2))
    let pair = try #require(carried.first)
    #expect(carried.count == 1)
    #expect(pair.channel == channel)
    #expect([pair.first, pair.second] == [node(1), node(2)])
    #expect(pair.bytes == 1000)
    #expect(budget.carried(at: now + .seconds(5)).isEmpty)
  }
}

private let channel = ChannelKey.fromName("detours").channelID

private func node(_ number: Int) -> NodeID {
  var bytes = [UInt8](repeating: 7, count: 32)
  for index in 0..<4 { bytes[index] = UInt8(truncatingIfNeeded: number >> (24 - 8 * index)) }
  guard let key = Bytes32(bytes) else { preconditionFailure("32 bytes by argument") }
  return NodeID(key)
}
