import MusterBase
import MusterMedia
import MusterWire
import Testing

/// A detector on a virtual clock, and what its node gives up.
private struct Node {
  var detector = CPUOveruseDetector()
  var adaptation = CPUAdaptation()
  var now = Instant.zero + .seconds(100)

  init() { detector.begin(at: now) }

  /// Lets work wait for so long during some windows; returns the steps after each.
  mutating func run(
    _ windows: Int, wait: Duration = .zero, encoding: Double? = nil, samples: Int = 50
  ) -> [CPUAdaptation.Step] {
    (0..<windows).map { _ in
      for _ in 0..<samples { detector.noteLoopWait(wait) }
      if let encoding { detector.noteEncoding(encoding, frames: 7) }
      now = now + .milliseconds(250)
      if let verdict = detector.verdict(at: now) { _ = adaptation.take(verdict, at: now) }
      return adaptation.step
    }
  }
}

struct CPUOveruseDetectorTests {
  @Test func workThatHardlyWaitsChangesNothing() {
    var node = Node()
    #expect(node.run(40, wait: .milliseconds(15), encoding: 1.9).allSatisfy { $0 == .nothing })
  }

  @Test func longWaitsForTheLoopTakeAStepEveryHalfSecond() {
    var node = Node()
    #expect(
      node.run(6, wait: .milliseconds(25))
        == [.nothing, .quickEncoding, .quickEncoding, .othersSlower, .othersSlower, .allSlower])
  }

  @Test func encodersThatDoNotKeepUpCountAsMuch() {
    var node = Node()
    #expect(node.run(2, encoding: 2.1) == [.nothing, .quickEncoding])
  }

  @Test func aSevereShortageIsAnsweredWithinTwoSeconds() {
    var node = Node()
    let steps = node.run(8, wait: .milliseconds(300))
    #expect(steps[0] == .othersSlower && steps[4] == .longPackets)
    #expect(steps.last == .longPackets, "there is nothing more to give up")
  }

  @Test func fewSamplesSayNothing() {
    var node = Node()
    #expect(node.run(8, wait: .seconds(1), samples: 7).allSatisfy { $0 == .nothing })
  }

  @Test func whatWasMeasuredBeforeACallDoesNotCount() {
    var detector = CPUOveruseDetector()
    detector.noteLoopWait(.seconds(10))
    detector.noteEncoding(9, frames: 9)
    #expect(detector.deadline == nil && detector.verdict(at: .zero + .seconds(1)) == nil)
  }

  @Test func nonsenseFromTheShellIsIgnored() {
    var node = Node()
    node.detector.noteEncoding(.infinity, frames: 3)
    node.detector.noteEncoding(.nan, frames: 3)
    node.detector.noteEncoding(5, frames: 0)
    node.detector.noteLoopWait(.seconds(-5))
    #expect(node.run(2).allSatisfy { $0 == .nothing })
  }
}

struct CPUAdaptationTests {
  @Test func everythingComesBackWithinFiveSeconds() {
    var node = Node()
    _ = node.run(8, wait: .milliseconds(300))
    let steps = node.run(20)
    #expect(steps.firstIndex(of: .nothing).map { $0 < 18 } ?? false)
  }

  /// Waits that are neither long nor short: the step is right as it is.
  @Test func nothingChangesInBetween() {
    var node = Node()
    _ = node.run(2, wait: .milliseconds(25))
    #expect(node.run(40, wait: .milliseconds(10)).allSatisfy { $0 == .quickEncoding })
  }

  /// A node whose CPU suffices for one step less only while it is not taken back.
  @Test func aStepThatHadToBeTakenAgainIsKeptForLonger() {
    var node = Node()
    var changes = 0
    var last = CPUAdaptation.Step.nothing
    for _ in 0..<(4 * 120) {
      let wait: Duration = node.adaptation.step < .othersSlower ? .milliseconds(30) : .zero
      let step = node.run(1, wait: wait)[0]
      if step != last { changes += 1 }
      last = step
    }
    #expect(changes <= 18, "\(changes) changes in two minutes")
  }

  @Test func whenSomebodyLeavesItIsTriedAtOnce() {
    var node = Node()
    _ = node.run(4, wait: .milliseconds(30))
    _ = node.run(2)
    _ = node.run(4, wait: .milliseconds(30))
    #expect(node.run(8) == Array(repeating: node.adaptation.step, count: 8), "paused")
    let paused = node.adaptation.step
    node.adaptation.hasLessToDo()
    #expect(node.run(2).last.map { $0 < paused } ?? false)
  }

  private func at(_ step: CPUAdaptation.Step) -> CPUAdaptation {
    var node = Node()
    while node.adaptation.step < step { _ = node.run(1, wait: .milliseconds(30)) }
    return node.adaptation
  }

  /// What nine nodes request of each other, by rank.
  private func requests(_ step: CPUAdaptation.Step) -> [VideoRequest] {
    (0..<8).map { rank in
      at(step).limit(ofRank: rank, among: 8).map { VideoRequest.best.adapted(to: $0) } ?? .best
    }
  }

  @Test func lessIsRequestedOfThoseWhoRankLow() {
    func text(_ step: CPUAdaptation.Step) -> String {
      requests(step).map { request in
        guard request.wantsVideo else { return "-" }
        let size = request.width == .max ? "L" : "S"
        return request.framesPerSecond == VideoRequest.anyRate
          ? size : "\(size)\(request.framesPerSecond)"
      }.joined(separator: " ")
    }
    #expect(text(.nothing) == "L L L L L L L L")
    #expect(text(.quickEncoding) == "L L L L L L L L")
    #expect(text(.othersSlower) == "L L15 L15 L15 L15 L15 L15 L15")
    #expect(text(.allSlower) == "L15 L15 L15 L15 L15 L15 L15 L15")
    #expect(text(.othersSmall) == "L15 S15 S15 S15 S15 S15 S15 S15")
    #expect(text(.allSmall) == "S15 S15 S15 S15 S15 S15 S15 S15")
    #expect(text(.othersSlow) == "S15 S8 S8 S8 S8 S8 S8 S8")
    #expect(text(.frontHalf) == "S15 S8 S8 S8 - - - -")
    #expect(text(.frontOnly) == "S15 S8 S8 - - - - -")
    #expect(text(.longPackets) == text(.frontOnly))
    for step in CPUAdaptation.Step.allCases.dropFirst(2) {
      #expect(requests(step).last?.why == .cpu)
    }
  }

  @Test func audioIsInLongPacketsOnlyWhenNothingElseIsLeft() {
    #expect(CPUAdaptation.Step.allCases.filter { at($0).sendsLongPackets } == [.longPackets])
  }

  @Test func aRequestWithinTheLimitStaysAsItIs() {
    let limit = VideoRequest(width: 320, height: 180, framesPerSecond: 15)
    for request in [VideoRequest.none, .outranked, VideoRequest(width: 160, height: 90)] {
      let expected =
        request.wantsVideo
        ? VideoRequest(width: 160, height: 90, framesPerSecond: 15, why: .cpu) : request
      #expect(request.adapted(to: limit) == expected)
    }
    let small = VideoRequest(width: 320, height: 180, framesPerSecond: 8)
    #expect(small.adapted(to: limit) == small)
  }

  @Test func smallLayersAreSentAtHalfTheRateAndTheLargestNotAtAll() {
    let (large, middle) = (LayerStep(layer: 2), LayerStep(layer: 1))
    #expect(at(.quickEncoding).limited(large, of: 3) == large)
    #expect(at(.quickEncoding).limited(middle, of: 3) == LayerStep(layer: 1, temporalLayers: 2))
    #expect(at(.allSmall).limited(large, of: 3) == LayerStep(layer: 1, temporalLayers: 2))
    // The only layer of a small camera stays.
    #expect(at(.frontOnly).limited(LayerStep(layer: 0), of: 1) == LayerStep(layer: 0))
  }
}
