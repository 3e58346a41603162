import MusterBase
import MusterCore
import MusterCrypto
import Testing

struct RelayBudgetTests {
  private static let (total, share) = (500_000.0, 250_000.0)
  private static let (totalAtOnce, shareAtOnce) = (250_000.0, 125_000.0)

  /// Offers packets at the given rates for some seconds; returns the bytes accepted from each pair.
  private func offer(
    _ rates: [(from: Int, to: Int, perSecond: Int)], seconds: Int = 10, _ budget: inout RelayBudget
  ) -> [Double] {
    let bytes = 1000
    var taken = rates.map { _ in 0.0 }
    // Each millisecond, the packets that are due for each pair arrive.
    for millisecond in 0..<(seconds * 1000) {
      let now = Instant.zero + .seconds(100) + .milliseconds(millisecond)
      for (index, rate) in rates.enumerated() {
        let due = { $0 * rate.perSecond / bytes / 1000 }
        for _ in due(millisecond)..<due(millisecond + 1)
        where budget.take(
          bytes, from: node(rate.from), to: node(rate.to), in: channel, at: now)
        {
          taken[index] += Double(bytes)
        }
      }
    }
    return taken
  }

  @Test func aPairGetsHalfOfItAndBothDirectionsShareThat() {
    var budget = RelayBudget()
    let alone = offer([(1, 2, 1_000_000)], &budget)[0]
    #expect(alone <= Self.shareAtOnce + 10 * Self.share)
    #expect(alone >= 10 * Self.share)
    budget = RelayBudget()
    let both = offer([(1, 2, 1_000_000), (2, 1, 1_000_000)], &budget)
    #expect(both[0] + both[1] <= Self.shareAtOnce + 10 * Self.share)
    #expect(both.allSatisfy { $0 > 0 })
  }

  @Test func anotherPairHasItsShareBesideAGreedyOne() {
    var budget = RelayBudget()
    let taken = offer([(1, 2, 10_000_000), (3, 4, 240_000)], &budget)
    #expect(taken[1] == 2_400_000)
    #expect(taken[0] <= Self.shareAtOnce + 10 * Self.share)
  }

  @Test func aModestPairLosesNextToNothingHoweverManyAreGreedy() {
    for greedy in 1...4 {
      var budget = RelayBudget()
      let pairs = (1...greedy).map { (2 * $0 + 1, 2 * $0 + 2, 2_000_000) }
      let taken = offer([(1, 2, 90_000)] + pairs, &budget)
      // The missing 2 % fall into the first 250 ms, in which the demand of each pair is not known
      // yet.
      #expect(taken[0] >= 0.98 * 900_000, "\(greedy) greedy pairs")
    }
  }

  @Test func manyWhoWantLittleTakeNothingFromOneWhoWantsMuch() {
    var budget = RelayBudget()
    let many = (1...60).map { (2 * $0 + 1, 2 * $0 + 2, 1000) }
    let taken = offer([(1, 2, 240_000)] + many, &budget)
    #expect(taken[0] >= 0.99 * 2_400_000)
  }

  @Test func thereIsATotalHoweverManyPairsThereAre() {
    for count in [3, 20, 300] {
      var budget = RelayBudget()
      // 300 pairs exceed the number remembered; a forgotten pair gets no larger share.
      let taken = offer(
        (0..<count).map { (2 * $0 + 1, 2 * $0 + 2, 3_000_000 / count) }, seconds: 5, &budget)
      let sum = taken.reduce(0, +)
      #expect(sum <= Self.totalAtOnce + 5 * Self.total, "\(count) pairs")
      #expect(sum >= 0.9 * 5 * Self.total, "\(count) pairs")
    }
  }

  @Test func aClockThatStandsOrGoesBackGivesNothing() {
    var budget = RelayBudget()
    let now = Instant.zero + .seconds(100)
    func take(_ at: Instant) -> Bool {
      budget.take(1000, from: node(1), to: node(2), in: channel, at: at)
    }
    let taken = (0..<1000).map { _ in take(now) }
    #expect(taken == (0..<1000).map { $0 < 25 })
    let (earlier, later) = (take(.zero), take(now + .milliseconds(4)))
    #expect(!earlier)
    #expect(later)
  }

  @Test func itIsMuchFromHalfOfItUntilNearlyAllIsThereAgain() {
    var budget = RelayBudget()
    let now = Instant.zero + .seconds(100)
    let atFirst = budget.isLoadHigh(at: now)
    #expect(!atFirst)
    func take(_ pairs: ClosedRange<Int>) {
      for pair in pairs {
        _ = budget.take(
          25_000, from: node(2 * pair), to: node(2 * pair + 1), in: channel, at: now)
      }
    }
    // The bucket of 250,000 bytes has lost 100,000 bytes here, and 150,000 below.
    take(1...4)
    let withLess = budget.isLoadHigh(at: now)
    #expect(!withLess)
    take(5...6)
    let withMore = budget.isLoadHigh(at: now)
    #expect(withMore)
    // 500 bytes a millisecond come back; at 225,000 there is room for others.
    let soon = budget.isLoadHigh(at: now + .milliseconds(240))
    #expect(soon)
    let later = budget.isLoadHigh(at: now + .milliseconds(260))
    #expect(!later)
  }

  @Test func relayedTrafficIsReportedForAsLongAsItFlows() throws {
    var budget = RelayBudget()
    let now = Instant.zero + .seconds(100)
    #expect(budget.carried(at: now).isEmpty)
    _ = budget.take(700, from: node(2), to: node(1), in: channel, at: now)
    _ = budget.take(300, from: node(1), to: node(2), in: channel, at: now + .seconds(1))
    // Refused packets do not count as carried.
    let refused = budget.take(200_000, from: node(1), to: node(2), in: channel, at: now)
    #expect(!refused)
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
