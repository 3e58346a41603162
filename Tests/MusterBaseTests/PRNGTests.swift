import MusterBase
import Testing

/// The output of the published algorithms for seed 0; any other would void every recorded seed.
@Test func seedsKeepTheirMeaning() {
  var zero = PRNG(seed: 0)
  #expect(
    (0..<3).map { _ in zero.next() } == [
      0x99EC_5F36_CB75_F2B4, 0xBF6E_1F78_4956_452A, 0x1A5F_849D_4933_E6E0,
    ])
}

@Test func equalSeedsGiveEqualNumbers() {
  var a = PRNG(seed: 42)
  var b = PRNG(seed: 42)
  var c = PRNG(seed: 43)
  let first = (0..<100).map { _ in a.next() }
  #expect(first == (0..<100).map { _ in b.next() })
  #expect(first != (0..<100).map { _ in c.next() })
}

@Test(arguments: [1, 2, 3, 7, 100, 1 << 40])
func numbersStayBelowTheirBoundAndReachItsEnds(bound: Int) {
  var random = PRNG(seed: UInt64(bound))
  let drawn = (0..<20_000).map { _ in random.below(bound) }
  #expect(drawn.allSatisfy { (0..<bound).contains($0) })
  if bound <= 100 { for value in [0, bound - 1] { #expect(drawn.contains(value)) } }
}

@Test func theSpreadIsEven() {
  var random = PRNG(seed: 9)
  var hits = [Int](repeating: 0, count: 10)
  for _ in 0..<100_000 { hits[random.below(10)] += 1 }
  // Five standard deviations of a binomial of 100,000 at 0.1.
  #expect(hits.allSatisfy { abs($0 - 10_000) < 475 }, "\(hits)")
  let heads = (0..<100_000).filter { _ in random.chance(0.25) }.count
  #expect(abs(heads - 25_000) < 685)
  #expect((0..<1000).map { _ in random.unit() }.allSatisfy { (0..<1).contains($0) })
}

@Test func jitterStaysWithinItsFraction() {
  var random = PRNG(seed: 3)
  let drawn = (0..<10_000).map { _ in random.jittered(.seconds(15), by: 0.2) }
  #expect(drawn.allSatisfy { $0 >= .seconds(12) && $0 <= .seconds(18) })
  #expect(drawn.contains { $0 < .seconds(13) } && drawn.contains { $0 > .seconds(17) })
}

@Test func bytesComeInTheNumberAskedFor() {
  var random = PRNG(seed: 4)
  #expect(random.bytes(0).isEmpty)
  #expect(random.bytes(33).count == 33)
}
