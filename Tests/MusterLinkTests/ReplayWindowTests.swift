import MusterBase
import MusterLink
import Testing

/// The cases of RFC 6479 as wireguard-go's `replay_test.go` orders them.
@Test func theWindowAcceptsEachCounterOnce() {
  let edge = ReplayWindow.size + 1
  let last = UInt64.max - (1 << 13) - 2
  let cases: [(counter: UInt64, isNew: Bool)] = [
    (0, true), (1, true), (1, false), (9, true), (8, true), (7, true), (7, false),
    (edge, true), (edge - 1, true), (edge - 1, false), (edge - 2, true), (2, true), (2, false),
    (edge + 16, true), (3, false), (edge + 16, false),
    (edge * 4, true), (edge * 4 - (edge - 1), true), (10, false), (edge * 4 - edge, false),
    (edge * 4 - (edge + 1), false), (edge * 4 - (edge - 2), true), (edge * 4 + 1 - edge, false),
    (0, false), (last, true), (last, false), (last - 1, true), (last - 1, false),
  ]
  var window = ReplayWindow()
  for (number, test) in cases.enumerated() {
    #expect(window.accept(test.counter) == test.isNew, "case \(number): \(test.counter)")
  }
}

@Test func theWindowIs8128Wide() {
  #expect(ReplayWindow.size == 8128)
  for newest: UInt64 in [8128, 8129, 10_000, 1 << 40] {
    var window = ReplayWindow()
    #expect(window.accept(newest) == true)
    #expect(window.accept(newest - 8128) == true)
    if newest > 8128 { #expect(window.accept(newest - 8129) == false) }
  }
}

@Test func aRunBackwardsThroughTheWholeWindowIsAccepted() {
  var window = ReplayWindow()
  for counter in stride(from: ReplayWindow.size, through: 0, by: -1) {
    #expect(window.accept(counter) == true)
  }
  #expect(window.accept(0) == false)
}

/// Against a model that remembers everything.
@Test(arguments: [1, 2, 3, 4, 5] as [UInt64])
func theWindowAgreesWithAModel(seed: UInt64) {
  var random = PRNG(seed: seed)
  var window = ReplayWindow()
  var seen: Set<UInt64> = []
  var highest: UInt64 = 0
  for _ in 0..<50_000 {
    let counter: UInt64
    switch random.below(20) {
    case 0: counter = highest &+ UInt64(random.below(20_000))
    case 1: counter = UInt64(random.below(Int(highest) + 1))
    default:
      counter = highest &+ UInt64(random.below(30)) &- min(highest, UInt64(random.below(40)))
    }
    let isTooOld = highest > counter && highest - counter > ReplayWindow.size
    let expected = !isTooOld && !seen.contains(counter)
    let isNew = window.accept(counter)
    guard isNew == expected else {
      Issue.record("seed \(seed): counter \(counter), highest \(highest), got \(isNew)")
      return
    }
    if isNew {
      seen.insert(counter)
      highest = max(highest, counter)
    }
  }
}
