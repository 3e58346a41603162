import MusterBase
import MusterCongestion
import Testing

struct UplinkPacerTests {
  private let start = Instant.zero + .seconds(10)

  @Test func packetsWaitForWhatHasLeft() {
    var pacer = UplinkPacer()
    pacer.rate = DataRate(kbps: 1_000)
    #expect(pacer.isOpen(at: start))
    // 8 ms at 1 Mbit/s.
    pacer.sent(bytes: 1_000, at: start)
    pacer.sent(bytes: 1_000, at: start)
    #expect(pacer.opensAt == start + .milliseconds(11))
    #expect(!pacer.isOpen(at: start + .milliseconds(10)))
    #expect(pacer.isOpen(at: start + .milliseconds(11)))
  }

  @Test func aDebtIsForgottenBeforeLong() {
    var pacer = UplinkPacer()
    pacer.rate = DataRate(kbps: 100)
    for _ in 0..<1_000 { pacer.sent(bytes: 1_200, at: start) }
    #expect(pacer.isOpen(at: start + .milliseconds(500)))
  }

  @Test func withoutALimitNothingWaits() {
    var pacer = UplinkPacer()
    pacer.rate = DataRate(kbps: 100)
    pacer.sent(bytes: 1_200, at: start)
    pacer.rate = nil
    pacer.sent(bytes: 1_200, at: start)
    #expect(pacer.opensAt == nil)
  }
}

struct OwnLimitTests {
  private let start = Instant.zero + .seconds(10)

  /// The seconds at which the own estimate begins to count and no longer does, in 300 s in which
  /// the path looks narrow as given.
  private func changes(
    isFound: (_ second: Double) -> Bool = { _ in false }, isNarrow: (_ second: Double) -> Bool
  ) -> [Double] {
    var limit = OwnLimit()
    var changes: [Double] = []
    for step in 0..<3_000 {
      let second = Double(step) / 10
      let counts = limit.update(
        isNarrow: isNarrow(second), isFound: isFound(second), at: start + .milliseconds(100 * step))
      if counts != (changes.count % 2 == 1) { changes.append(second) }
    }
    return changes
  }

  @Test func aPathThatIsNarrowForAMomentGetsItsShare() {
    #expect(changes { $0.truncatingRemainder(dividingBy: 2) < 0.5 } == [])
  }

  @Test func theShareIsTriedAgainAtGrowingIntervals() {
    #expect(
      changes { _ in true } == [
        0.6, 5.6, 6.2, 16.2, 16.8, 36.8, 37.4, 77.4, 78, 158, 158.6, 238.6, 239.2,
      ])
  }

  @Test func whatIsFoundCountsAtOnce() {
    #expect(changes(isFound: { $0 == 3 }, isNarrow: { _ in false }) == [3, 8])
  }

  @Test func afterAMinuteWithItsShareThePauseIsShortAgain() {
    #expect(
      changes { (10..<20).contains($0) || $0 >= 100 }.prefix(6) == [
        10.6, 15.6, 16.2, 26.2, 100.6, 105.6,
      ])
  }
}
