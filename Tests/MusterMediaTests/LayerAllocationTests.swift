import MusterBase
import MusterMedia
import MusterWire
import Testing

/// The layers 320x180, 640x360 and 1280x720.
private let ladder = LayerLadder.bitrates(
  of: LayerLadder.sizes(for: VideoSize(width: 1280, height: 720)), framesPerSecond: 30)

private func allocate(_ receivers: LayerAllocation.Receiver...) -> LayerAllocation {
  LayerAllocation(ladder, framesPerSecond: 30, receivers: receivers)
}

private func step(_ layer: Int, _ temporalLayers: Int = 3) -> LayerStep {
  LayerStep(layer: layer, temporalLayers: temporalLayers)
}

struct LayerAllocationTests {
  @Test func withoutLimitsEachGetsItsRequestAtTheLaddersRate() {
    let allocation = allocate(
      .init(requested: step(2), bandwidth: nil), .init(requested: step(0), bandwidth: nil))
    #expect(allocation.steps == [step(2), step(0)])
    #expect(allocation.bitrates == [150, nil, 2_500])
  }

  /// The layers begin at 1.2 times their minimum of 600, 150 and 30 kbit/s, with headers.
  @Test(arguments: [
    (3_000, step(2), 2_500), (850, step(2), 780), (750, step(1), 690), (250, step(1), 222),
    (200, step(0), 178), (70, step(0), 51), (50, step(0, 2), 57), (30, step(0, 1), 50),
    (12, step(0, 0), 30),
  ])
  func theBandwidthSelectsTheLayerAndItsRate(bandwidth: Int, expected: LayerStep, bitrate: Int) {
    let allocation = allocate(.init(requested: step(2), bandwidth: bandwidth))
    #expect(allocation.steps == [expected])
    let actual = allocation.bitrates[expected.layer] ?? 0
    #expect(abs(actual - bitrate) <= bitrate / 20, "\(actual)")
  }

  /// The frame rate requested limits smaller layers, too.
  @Test(arguments: [
    (nil, step(1, 2)), (300, step(1, 2)), (180, step(1, 2)), (140, step(0, 2)), (30, step(0, 1)),
    (12, step(0, 0)),
  ])
  func theRateRequestedLimitsAllSteps(bandwidth: Int?, expected: LayerStep) {
    #expect(allocate(.init(requested: step(1, 2), bandwidth: bandwidth)).steps == [expected])
    let lowest = allocate(.init(requested: step(1, 1), bandwidth: bandwidth)).steps
    #expect(lowest.allSatisfy { $0.map { $0.temporalLayers <= 1 } ?? false })
  }

  @Test func withoutRoomForAStillThereIsOnlyAudio() {
    let allocation = allocate(.init(requested: step(2), bandwidth: 5))
    #expect(allocation.steps == [nil] && allocation.bitrates == [nil, nil, nil])
  }

  /// Between falling and rising, the step stays. Temporal layers go before spatial ones.
  @Test(arguments: [
    (step(2), 700, step(2)), (step(2), 520, step(2, 2)), (step(2), 380, step(1)),
    (step(1), 160, step(1)), (step(1), 130, step(1, 2)), (step(1), 100, step(0)),
    (step(1, 2), 180, step(1, 2)), (step(1, 2), 230, step(1)), (step(0), 170, step(0)),
    (step(0), 230, step(1)), (step(0, 0), 100, step(0)),
  ])
  func aStepIsKeptWhileItFits(current: LayerStep, bandwidth: Int, expected: LayerStep) {
    let receiver = LayerAllocation.Receiver(
      requested: step(2), bandwidth: bandwidth, current: current)
    #expect(allocate(receiver).steps == [expected])
  }

  /// Unless twice of what it takes is free.
  @Test func aReceiverThatMayNotRiseStaysOrFalls() {
    for (bandwidth, expected) in [(1_000, step(1)), (130, step(1, 2)), (3_000, step(2))] {
      let receiver = LayerAllocation.Receiver(
        requested: step(2), bandwidth: bandwidth, current: step(1), mayRise: false)
      #expect(allocate(receiver).steps == [expected])
    }
    let share = LayerAllocation.Receiver(
      requested: step(2), bandwidth: 3_000, current: step(1), mayRise: false, isShare: true)
    #expect(allocate(share).steps == [step(1)])
    #expect(allocate(.init(requested: step(2), bandwidth: 12, mayRise: false)).steps == [nil])
  }

  /// Whatever the others have, the one with the most bandwidth gets the same.
  @Test func aNarrowPathChangesNothingForAWideOne() {
    let alone = allocate(.init(requested: step(2), bandwidth: 1_500, current: step(2)))
    for bandwidth in [0, 10, 40, 90, 200, 400, 700, 900, 1_200, 1_499] {
      let both = allocate(
        .init(requested: step(2), bandwidth: bandwidth, current: step(2)),
        .init(requested: step(2), bandwidth: 1_500, current: step(2)))
      #expect(both.steps[1] == alone.steps[0])
      #expect(both.bitrates[2] == alone.bitrates[2])
    }
  }

  /// The 1280x720 layer is encoded for the first receiver, too much for the others.
  @Test func aLayerThatIsEncodedForAnotherMayBeTooMuch() {
    let three = allocate(
      .init(requested: step(2), bandwidth: 5_000, current: step(2)),
      .init(requested: step(2), bandwidth: 850), .init(requested: step(2), bandwidth: 130))
    #expect(three.steps == [step(2), step(1), step(0)])
    let two = allocate(
      .init(requested: step(2), bandwidth: 2_400, current: step(2)),
      .init(requested: step(2), bandwidth: 1_900, current: step(2)))
    #expect(two.steps == [step(2), step(2, 2)])
  }

  /// Random receivers: nobody gets more than it requests, nor more than its path has room for, and
  /// no layer leaves the ladder.
  @Test func nobodyGetsMoreThanThePathHasRoomFor() {
    for seed in UInt64(1)...300 {
      var prng = PRNG(seed: seed)
      let receivers = (0..<5).map { _ in
        LayerAllocation.Receiver(
          requested: step(prng.below(3), 1 + prng.below(3)), bandwidth: prng.below(4_000),
          current: prng.chance(0.5) ? step(prng.below(3)) : nil, mayRise: prng.chance(0.7))
      }
      let allocation = LayerAllocation(ladder, framesPerSecond: 30, receivers: receivers)
      for (receiver, step) in zip(receivers, allocation.steps) {
        guard let step, let bitrate = allocation.bitrates[step.layer] else { continue }
        #expect(step.layer <= receiver.requested.layer, "seed \(seed)")
        #expect(step.temporalLayers <= receiver.requested.temporalLayers, "seed \(seed)")
        let needed = step.bandwidth(ofLayerAt: bitrate, framesPerSecond: 30)
        #expect(needed * 100 <= (receiver.bandwidth ?? 0) * 112, "seed \(seed)")
      }
      for (bitrate, limits) in zip(allocation.bitrates, ladder) {
        if let bitrate { #expect((limits.min...limits.max).contains(bitrate), "seed \(seed)") }
      }
    }
  }
}

/// A stream to a receiver whose bandwidth changes, on a virtual clock.
private final class Limited {
  static let layers = LayerLadder.sizes(for: VideoSize(width: 1280, height: 720)).map {
    VideoLayer(size: $0, framesPerSecond: 30)
  }
  var streams = OutgoingStreams(seed: 1)
  var now = Instant.zero + .seconds(100)

  /// Selects a step, of whose layer a keyframe comes at once; returns the change.
  func select(
    _ step: LayerStep?, for requested: VideoRequest = .best, after time: Duration = .zero
  ) -> LayerChange? {
    now = now + time
    let now = now
    return streams.withStream(.camera) { stream in
      let selection = stream.select(
        step, for: requested, among: Self.layers, prevented: nil, at: now)
      return selection.change
        ?? selection.keyframe.flatMap { stream.switchLayer(to: $0, wait: .zero) }
    }
  }

  func mayRise(after time: Duration) -> Bool {
    streams[.camera]?.mayRise(at: now + time) ?? false
  }

  /// Whether a frame of the layer being sent is sent; keyframes are of temporal layer 0.
  func admits(_ temporalLayer: Int, isKeyframe: Bool = false) -> Bool {
    let now = now
    return streams.withStream(.camera) { stream in
      let frame = PacketizedFrame(
        layer: stream.current?.layer ?? 0, temporalLayer: temporalLayer, isKeyframe: isKeyframe,
        isReference: temporalLayer < 2, capturedAt: now, timestamp: 0, payloads: [[0, 1][...]])
      return stream.admits(frame, wait: .zero, at: now)
    }
  }

  /// The layer of which a keyframe is requested.
  func keyframe(after time: Duration) -> Int? {
    now = now + time
    let now = now
    return streams.withStream(.camera) { $0.dueKeyframe(wait: .zero, at: now) }
  }
}

private func layer(_ index: Int, at framesPerSecond: Int) -> VideoLayer {
  VideoLayer(size: Limited.layers[index].size, framesPerSecond: framesPerSecond)
}

struct BandwidthTests {
  @Test func eachStepIsReportedWithItsFrameRateAndReason() {
    let limited = Limited()
    let full = layer(2, at: 30)
    #expect(limited.select(step(2)) == LayerChange(from: nil, to: full, why: .started))
    let thinned = layer(2, at: 15)
    #expect(limited.select(step(2, 2)) == LayerChange(from: full, to: thinned, why: .bandwidth))
    let small = layer(0, at: 30)
    #expect(limited.select(step(0)) == LayerChange(from: thinned, to: small, why: .bandwidth))
    let slow = layer(0, at: 8)
    #expect(limited.select(step(0, 1)) == LayerChange(from: small, to: slow, why: .bandwidth))
    let stills = layer(0, at: 0)
    #expect(limited.select(step(0, 0)) == LayerChange(from: slow, to: stills, why: .bandwidth))
    #expect(limited.select(nil) == LayerChange(from: stills, to: nil, why: .bandwidth))
    #expect(limited.select(step(2)) == LayerChange(from: nil, to: full, why: .started))
  }

  /// The bandwidth is the reason only while there would be more without it.
  @Test func theReasonIsThatOfTheRequestAgainOnceAllOfItIsSent() {
    let limited = Limited()
    func why(_ step: LayerStep?, for requested: VideoRequest = .best) -> LayerReason? {
      _ = limited.select(step, for: requested, after: .seconds(20))
      return limited.streams[.camera]?.why
    }
    #expect(why(step(0)) == .bandwidth)
    #expect(why(step(1)) == .bandwidth && why(step(2)) == .started)
    #expect(why(step(2, 2)) == .bandwidth && why(step(2)) == .started)
    #expect(why(nil) == .bandwidth && why(step(0)) == .bandwidth && why(step(2)) == .started)
    let medium = VideoRequest(width: 640, height: 360)
    #expect(why(step(1), for: medium) == .requested)
    #expect(why(step(0), for: medium) == .bandwidth && why(step(1), for: medium) == .requested)
    #expect(why(step(1)) == .bandwidth && why(step(2)) == .requested)
  }

  @Test func theFirstStepMayBeLimited() {
    let change = LayerChange(from: nil, to: layer(1, at: 30), why: .bandwidth)
    #expect(Limited().select(step(1)) == change)
  }

  @Test func theRequestIsTheReasonIfItAllowsNoMore() {
    let limited = Limited()
    _ = limited.select(step(1))
    let medium = VideoRequest(width: 640, height: 360)
    #expect(limited.select(step(1), for: medium) == nil)
    #expect(limited.streams[.camera]?.why == .requested)
    #expect(limited.select(step(1), for: .best) == nil)
    #expect(limited.streams[.camera]?.why == .bandwidth)
  }

  /// Neither the first step nor a change that the receiver requests delays the next rise.
  @Test func aStreamRisesTenSecondsAfterARiseAndThreeAfterAFall() {
    let limited = Limited()
    func mayRise(onlyAfter milliseconds: Int) -> Bool {
      !limited.mayRise(after: .milliseconds(milliseconds - 1))
        && limited.mayRise(after: .milliseconds(milliseconds))
    }
    _ = limited.select(step(1))
    #expect(limited.mayRise(after: .zero))
    _ = limited.select(step(0), for: VideoRequest(width: 320, height: 180))
    #expect(limited.mayRise(after: .zero))
    _ = limited.select(step(1), for: .best)
    _ = limited.select(step(2), after: .seconds(1))
    #expect(mayRise(onlyAfter: 10_000))
    _ = limited.select(step(1), after: .seconds(4))
    #expect(mayRise(onlyAfter: 6_000))
    _ = limited.select(step(0), after: .seconds(5))
    #expect(mayRise(onlyAfter: 3_000))
    _ = limited.select(nil, after: .seconds(30))
    #expect(mayRise(onlyAfter: 3_000))
    // To be sent again after a rest is no rise.
    _ = limited.select(nil, for: .outranked)
    #expect(limited.mayRise(after: .zero))
    _ = limited.select(step(1), for: .best)
    _ = limited.select(step(0))
    #expect(mayRise(onlyAfter: 3_000))
    // Nor is something after nothing.
    _ = limited.select(nil, after: .seconds(10))
    _ = limited.select(step(0, 0), after: .seconds(3))
    #expect(limited.mayRise(after: .zero))
    _ = limited.select(step(0), after: .seconds(1))
    #expect(mayRise(onlyAfter: 10_000))
    // Another path has nothing to do with what came before.
    limited.streams.pathChanged()
    #expect(limited.mayRise(after: .zero))
  }

  @Test func temporalLayersAboveTheStepAreLeftOut() {
    let limited = Limited()
    _ = limited.select(step(0))
    #expect(limited.admits(0, isKeyframe: true) && limited.admits(2) && limited.admits(1))
    _ = limited.select(step(0, 2))
    #expect(!limited.admits(2) && limited.admits(0) && limited.admits(1))
    _ = limited.select(step(0, 1))
    #expect(!limited.admits(2) && limited.admits(0) && !limited.admits(1))
    // A frame of the highest layer may refer to one of the middle layer.
    _ = limited.select(step(0))
    #expect(!limited.admits(2) && limited.admits(0) && limited.admits(2))
    #expect(!limited.streams.owesKeyframe(of: .camera))
  }

  @Test func stillsAreKeyframesAFewSecondsApart() {
    let limited = Limited()
    _ = limited.select(step(0))
    #expect(limited.admits(0, isKeyframe: true))
    _ = limited.select(step(0, 0))
    #expect(!limited.admits(0) && limited.streams.owesKeyframe(of: .camera))
    #expect(limited.keyframe(after: .milliseconds(3_999)) == nil)
    #expect(limited.keyframe(after: .milliseconds(1)) == 0)
    #expect(limited.admits(0, isKeyframe: true) && !limited.admits(0))
    #expect(limited.keyframe(after: .milliseconds(3_999)) == nil)
    // More than stills begins with a keyframe at once.
    _ = limited.select(step(0))
    #expect(limited.keyframe(after: .zero) == 0)
  }
}
