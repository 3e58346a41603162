import MusterBase
import MusterMedia
import Testing

struct DisplayQueueTests {
  @Test func framesAreShownInOrderWhenTheyAreDue() {
    var queue = DisplayQueue<Int>()
    let start = Instant.milliseconds(1000)
    #expect(queue.add(1, after: .milliseconds(50), at: start) == start + .milliseconds(50))
    #expect(queue.due(at: start).isEmpty)
    // A frame that was repaired for long does not overtake the one before it.
    let late = start + .milliseconds(49)
    #expect(queue.add(2, after: .zero, at: start + .milliseconds(40)) == start + .milliseconds(50))
    #expect(queue.add(3, after: .milliseconds(20), at: late) == start + .milliseconds(69))
    #expect(queue.due(at: start + .milliseconds(48)).isEmpty)
    #expect(queue.due(at: late) == [1, 2])
    #expect(queue.due(at: start + .milliseconds(69)) == [3])
    #expect(queue.due(at: start + .seconds(1)).isEmpty)
  }

  @Test func aFrameWithoutADelayIsDueAtOnce() {
    var queue = DisplayQueue<Int>()
    #expect(queue.add(1, after: .zero, at: .milliseconds(7)) == .milliseconds(7))
    #expect(queue.due(at: .milliseconds(7)) == [1])
  }

  @Test func aSenderOfManyFramesDoesNotMakeTheQueueGrow() {
    var queue = DisplayQueue<Int>()
    var shown: [Int] = []
    for number in 0..<1000 {
      _ = queue.add(number, after: .milliseconds(500), at: .zero)
      shown += queue.due(at: .zero)
    }
    #expect(shown == Array(0..<936))
  }
}
