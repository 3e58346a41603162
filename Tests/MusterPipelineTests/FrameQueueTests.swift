import MusterBase
import MusterPipeline
import Testing

/// A queued element with its number, so that tests can identify it.
private struct Item: Equatable, Sendable {
  var number: Int
  var media: QueuedMedia<String>
  /// The numbers of the frames that it refers to.
  var references: [Int] = []

  static func frame(_ number: Int, _ layer: Int, of stream: String = "a") -> Item {
    Item(number: number, media: .encoded(stream, temporalLayer: layer, isKeyframe: false))
  }

  static func keyframe(_ number: Int, of stream: String = "a") -> Item {
    Item(number: number, media: .encoded(stream, temporalLayer: 0, isKeyframe: true))
  }

  static func audio(_ number: Int) -> Item { Item(number: number, media: .independent("a")) }

  static func end(_ number: Int, of stream: String = "a") -> Item {
    Item(number: number, media: .control(stream))
  }
}

private func queue(encoded: Int = 4, independent: Int = 2) -> FrameQueue<Item, String> {
  FrameQueue(encoded: encoded, independent: independent) { $0.media }
}

struct FrameQueueTests {
  private func numbers(_ queue: FrameQueue<Item, String>) -> [Int] {
    queue.takeWithoutWaiting().map(\.number)
  }

  @Test func theOrderIsKeptAcrossKinds() {
    let queue = queue()
    for item in [Item.keyframe(1), .audio(2), .end(3, of: "b"), .frame(4, 2), .end(5)] {
      #expect(queue.add(item) == .queued)
    }
    #expect(numbers(queue) == [1, 2, 3, 4, 5])
    #expect(queue.level == QueueLevel(waiting: 0, dropped: 0))
  }

  @Test func theHighestTemporalLayerGoesFirst() {
    let queue = queue()
    queue.add(.keyframe(1))
    queue.add(.frame(2, 2))
    queue.add(.frame(3, 1))
    queue.add(.frame(4, 0))
    #expect(queue.add(.frame(5, 0)) == .dropped)
    #expect(numbers(queue) == [1, 3, 4, 5])
  }

  @Test func framesThatReferToADroppedOneAreDropped() {
    let queue = queue()
    queue.add(.keyframe(1))
    queue.add(.frame(2, 1))
    queue.add(.frame(3, 0))
    queue.add(.frame(4, 1))
    // The oldest frame of layer 1 goes; frame 4 refers to frame 3 only.
    #expect(queue.add(.frame(5, 0)) == .dropped)
    #expect(numbers(queue) == [1, 3, 4, 5])
    queue.add(.keyframe(6))
    queue.add(.frame(7, 0))
    queue.add(.frame(8, 0))
    queue.add(.frame(9, 1))
    #expect(queue.add(.frame(10, 0)) == .dropped)
    #expect(numbers(queue) == [6, 7, 8, 10])
  }

  @Test func aGapAboveTheBaseLayerEndsWithTheNextBaseFrame() {
    let queue = queue(encoded: 2)
    queue.add(.keyframe(1))
    queue.add(.frame(2, 0))
    #expect(queue.add(.frame(3, 1)) == .dropped)
    #expect(queue.add(.frame(4, 2)) == .dropped)
    #expect(queue.level.waiting == 2)
    #expect(numbers(queue) == [1, 2])
    #expect(queue.add(.frame(5, 1)) == .dropped)
    #expect(queue.add(.frame(6, 0)) == .queued)
    #expect(queue.add(.frame(7, 1)) == .queued)
    #expect(numbers(queue) == [6, 7])
  }

  @Test func baseLayersGoUpToTheNextKeyframe() {
    let queue = queue()
    queue.add(.keyframe(1))
    queue.add(.frame(2, 0))
    queue.add(.keyframe(3))
    queue.add(.frame(4, 0))
    #expect(queue.add(.frame(5, 0)) == .dropped)
    #expect(numbers(queue) == [3, 4, 5])
  }

  @Test func withoutAKeyframeTheStreamWaitsForOne() {
    let queue = queue()
    queue.add(.keyframe(1))
    for number in 2...4 { queue.add(.frame(number, 0)) }
    #expect(queue.add(.frame(5, 0)) == .needsKeyframe("a"))
    #expect(queue.add(.frame(6, 0)) == .dropped)
    #expect(queue.add(.frame(7, 0, of: "b")) == .queued)
    #expect(queue.add(.keyframe(8)) == .queued)
    #expect(queue.add(.frame(9, 2)) == .queued)
    #expect(numbers(queue) == [7, 8, 9])
    #expect(queue.level.dropped == 6)
  }

  @Test func oneSlowStreamDoesNotBreakAnother() {
    let queue = queue()
    queue.add(.keyframe(1, of: "b"))
    for number in 2...4 { queue.add(.frame(number, 0)) }
    // The oldest element is the only frame of "b", its keyframe, so that one is dropped.
    #expect(queue.add(.frame(5, 0)) == .needsKeyframe("b"))
    #expect(numbers(queue) == [2, 3, 4, 5])
  }

  @Test func theOldestAudioGoesAndVideoStays() {
    let queue = queue()
    queue.add(.keyframe(1))
    for number in 2...3 { #expect(queue.add(.audio(number)) == .queued) }
    #expect(queue.add(.audio(4)) == .dropped)
    #expect(numbers(queue) == [1, 3, 4])
  }

  @Test func endMarkersAreNeverDropped() {
    let queue = queue(encoded: 1, independent: 1)
    for number in 0..<100 {
      queue.add(.end(number, of: "\(number)"))
      queue.add(.frame(1000 + number, 0))
      queue.add(.audio(2000 + number))
    }
    let ends = queue.takeWithoutWaiting().filter {
      if case .control = $0.media { true } else { false }
    }
    #expect(ends.map(\.number) == Array(0..<100))
  }

  @Test func endMarkersInARowBecomeOne() {
    let queue = queue()
    for number in 0..<100 { queue.add(.end(number)) }
    #expect(numbers(queue) == [0])
    queue.add(.end(1))
    queue.add(.keyframe(2))
    queue.add(.end(3))
    #expect(numbers(queue) == [1, 2, 3])
  }

  @Test func aClosedQueueStillGivesWhatItHas() {
    let queue = queue()
    queue.add(.keyframe(1))
    queue.close()
    #expect(queue.add(.frame(2, 0)) == .dropped)
    #expect(queue.takeAll()?.map(\.number) == [1])
    #expect(queue.takeAll() == nil)
  }

  /// Whatever is dropped, each dequeued frame follows all frames that it refers to.
  @Test func theOutputIsAlwaysDecodable() {
    var prng = PRNG(seed: 11)
    for _ in 0..<200 {
      let queue = queue(encoded: 2 + prng.below(12))
      var encoders = [Encoder(stream: "a"), Encoder(stream: "b")]
      var decoded: [Int] = []
      for number in 0..<400 {
        queue.add(encoders[prng.below(2)].next(number, isKeyframe: prng.below(12) == 0))
        guard prng.below(9) == 0 else { continue }
        for item in queue.takeWithoutWaiting() {
          #expect(item.references.allSatisfy(decoded.contains))
          decoded.append(item.number)
        }
      }
      #expect(!decoded.isEmpty)
    }
  }
}

/// One stream in the temporal pattern 0, 2, 1, 2 of the VP8 encoder.
private struct Encoder {
  let stream: String
  private var step = 0
  private var base: Int?
  private var golden: Int?

  init(stream: String) { self.stream = stream }

  mutating func next(_ number: Int, isKeyframe: Bool) -> Item {
    let isKeyframe = isKeyframe || base == nil
    if isKeyframe { step = 0 }
    let layer = [0, 2, 1, 2][step % 4]
    step += 1
    var item = isKeyframe ? Item.keyframe(number, of: stream) : .frame(number, layer, of: stream)
    if !isKeyframe { item.references = [base].compactMap { $0 } }
    switch layer {
    case 0: (base, golden) = (number, nil)
    case 1: golden = number
    default: item.references += [golden].compactMap { $0 }
    }
    return item
  }
}
