import MusterBase
import Testing

struct EventQueueTests {
  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func valuesComeByTimeAndThenInTheirOrder(seed: UInt64) {
    var prng = PRNG(seed: seed)
    var queue = EventQueue<Int>()
    var expected: [(at: Instant, value: Int)] = []
    for value in 0..<300 {
      let time = at(prng.below(40))
      queue.schedule(value, at: time)
      expected.append((time, value))
    }
    expected.sort { ($0.at, $0.value) < ($1.at, $1.value) }
    var values: [Int] = []
    while let deadline = queue.deadline {
      if let value = queue.popDue(at: deadline) { values.append(value) }
    }
    #expect(values == expected.map(\.value), "seed \(seed)")
  }

  @Test func nothingComesBeforeItsTime() {
    var queue = EventQueue<Int>()
    queue.schedule(1, at: at(10))
    #expect(queue.popDue(at: at(9)) == nil)
    #expect(queue.popDue(at: at(10)) == 1)
    #expect(queue.popDue(at: at(11)) == nil)
  }

  private func at(_ milliseconds: Int) -> Instant { .zero + .milliseconds(milliseconds) }
}
