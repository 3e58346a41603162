import MusterBase
import MusterSimulator
import Testing

/// Frames of the synthetic source, checked by the decoder model of the checker.
struct FrameCheckerTests {
  private func frames(_ count: Int, layers: [Int] = [0], seed: UInt64 = 1) -> [EncodedFrame] {
    var prng = PRNG(seed: seed)
    var source = SyntheticSource(sender: 1, run: 1, layers: 3)
    source.encode(layers)
    return (0..<count).flatMap { _ in source.frames(capturedAt: .zero, &prng) }
  }

  /// The first fault that the checker reports when these frames are shown.
  private func fault(_ frames: [EncodedFrame]) -> String? {
    var checker = FrameChecker(nodes: 2)
    for frame in frames {
      if let fault = checker.decoded(frame.data, layer: frame.layer, from: 1, at: 0) {
        return fault
      }
    }
    return nil
  }

  @Test func allFramesInOrderAreFine() {
    let all = frames(40)
    #expect(all.map(\.temporalLayer).prefix(9) == [0, 2, 1, 2, 0, 2, 1, 2, 0])
    #expect(all.map(\.isKeyframe).prefix(3) == [true, false, false])
    #expect(fault(all) == nil)
  }

  @Test func framesThatNoneUsesMayBeMissing() {
    #expect(fault(frames(40).filter { $0.temporalLayer < 2 }) == nil)
    #expect(fault(frames(40).filter { $0.temporalLayer == 0 }) == nil)
  }

  @Test func aMissingReferenceIsFound() {
    let all = frames(9)
    for missing in all.indices where all[missing].isReference && missing < 8 {
      var some = all
      some.remove(at: missing)
      #expect(fault(some) != nil, "without \(missing)")
    }
  }

  @Test func framesTwiceOrBackwardsAreFound() {
    let all = frames(4)
    #expect(fault(all + [all[3]]) != nil)
    #expect(fault([all[0], all[2], all[1]]) != nil)
    #expect(fault([all[0], all[0]]) != nil)
  }

  @Test func framesMayBeDecodedAgainIfTheyAreNotShown() {
    let all = frames(6)
    for isShown in [false, true] {
      var checker = FrameChecker(nodes: 2)
      for frame in all { _ = checker.decoded(frame.data, layer: 0, from: 1, at: 0) }
      let again = [all[0], all[4]].map {
        checker.decoded($0.data, layer: 0, isShown: isShown, from: 1, at: 0) == nil
      }
      #expect(again == [!isShown, !isShown])
      // The golden frame of the former base frame is still missing.
      #expect(checker.decoded(all[3].data, layer: 0, isShown: false, from: 1, at: 0) != nil)
      #expect((checker.decoded(all[5].data, layer: 0, from: 1, at: 0) == nil) == false)
    }
  }

  @Test func aFirstFrameThatIsNoKeyframeIsFound() {
    let all = frames(4)
    #expect(fault(Array(all.dropFirst())) != nil)
    var checker = FrameChecker(nodes: 2)
    for frame in all {
      #expect(checker.decoded(frame.data, layer: 0, from: 1, at: 0) == nil)
    }
    checker.ended(from: 1, at: 0)
    // A new decoder may get frames again that the former one got, but must start at a keyframe.
    #expect(checker.decoded(all[1].data, layer: 0, from: 1, at: 0) != nil)
    #expect(checker.decoded(all[0].data, layer: 0, from: 1, at: 0) == nil)
  }

  @Test func layersChangeAtKeyframesOnly() {
    var prng = PRNG(seed: 2)
    var source = SyntheticSource(sender: 1, run: 1, layers: 3)
    source.encode([0, 2])
    let first = source.frames(capturedAt: .zero, &prng)
    let second = source.frames(capturedAt: .zero, &prng)
    #expect(first.map(\.layer) == [0, 2] && first.allSatisfy(\.isKeyframe))
    #expect(fault([first[0], first[1], second[1]]) == nil)
    #expect(fault([first[0], second[1]]) != nil)
  }

  @Test func aRequestedKeyframeComesNext() {
    var prng = PRNG(seed: 3)
    var source = SyntheticSource(sender: 1, run: 1, layers: 1)
    source.encode([0])
    _ = source.frames(capturedAt: .zero, &prng)
    #expect(source.frames(capturedAt: .zero, &prng).map(\.isKeyframe) == [false])
    source.requestKeyframe(0)
    #expect(source.frames(capturedAt: .zero, &prng).map(\.isKeyframe) == [true])
    source.encode([])
    #expect(source.frames(capturedAt: .zero, &prng).isEmpty)
    source.encode([0])
    #expect(source.frames(capturedAt: .zero, &prng).map(\.isKeyframe) == [true])
  }

  @Test func alteredAndMisplacedFramesAreFound() {
    let frame = frames(1)[0]
    for index in [0, 3, 12, 16, 25, 40, frame.data.count - 1] {
      var altered = frame
      altered.data[index] ^= 0x40
      #expect(fault([altered]) != nil, "byte \(index)")
    }
    var short = frame
    short.data.removeLast(frame.data.count - 12)
    #expect(fault([short]) != nil)
    var checker = FrameChecker(nodes: 3)
    #expect(checker.decoded(frame.data, layer: 1, from: 1, at: 0) != nil)
    #expect(checker.decoded(frame.data, layer: 0, from: 2, at: 0) != nil)
  }
}
