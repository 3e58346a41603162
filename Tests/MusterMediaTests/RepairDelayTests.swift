import MusterBase
import MusterMedia
import Testing

private let far = VideoSimulation.Network(loss: 0.01, delay: .milliseconds(150))

/// The intervals between frames shown since `start` that are freezes.
private func freezes(of call: VideoSimulation, since start: Instant) -> [Duration] {
  let times = call.shown.map(\.at).filter { $0 >= start }
  return zip(times, times.dropFirst()).map { $1 - $0 }.filter { $0 > .milliseconds(183) }
}

@Test func lossesAtALongRoundTripDoNotFreezeTheVideo() {
  var frozen = Duration.zero
  var frames = 0
  for seed in UInt64(0)..<8 {
    var call = VideoSimulation(seed: seed, network: far)
    call.run(for: .seconds(10))
    let (start, before) = (call.now, call.shown.count)
    call.run(for: .seconds(55))
    frozen += freezes(of: call, since: start).reduce(.zero, +)
    frames += call.shown.count - before
    // A round trip and 38 ms, of which audio may lead by 90.
    let delay = call.receiver.neededAudioDelay(at: call.now)
    #expect(delay > .milliseconds(248) && delay < .milliseconds(249), "seed \(seed)")
  }
  // A packet that is lost twice still freezes the video.
  #expect(frozen <= .seconds(8), "\(frozen) of 440 s")
  #expect(frames >= 8 * 1640, "\(frames) of \(8 * 1650)")
}

@Test func videoWaitsForRepairsWhileThereAreLossesOnly() {
  var call = VideoSimulation(seed: 1, network: far)
  call.run(for: .seconds(20))
  #expect(call.shown.last?.waited == true)
  call.network.loss = 0
  call.run(for: .seconds(25))
  #expect(call.shown.last?.waited == false)
  #expect(call.receiver.neededAudioDelay(at: call.now) == .zero)
  let latency = call.shown.last.flatMap { last in call.captured.last.map { last.at - $0 } }
  #expect(latency.map { $0 < .milliseconds(160) } == true, "\(latency.debugDescription)")
}

@Test func reorderedPacketsAreNoReasonToWait() {
  var call = VideoSimulation(
    seed: 2, network: .init(delay: .milliseconds(150), jitter: .milliseconds(4)))
  call.run(for: .seconds(30))
  #expect(!call.shown.contains { $0.waited })
}

@Test func twoLossesInTenSecondsAreNoReasonToWait() {
  var call = VideoSimulation(seed: 3, network: .init(delay: .milliseconds(150)))
  for losses in [2, 3] {
    call.run(for: .seconds(30))
    for _ in 0..<losses {
      call.network.loss = 1
      call.run(for: .milliseconds(40))
      call.network.loss = 0
      call.run(for: .seconds(3))
    }
    #expect(call.shown.last?.waited == (losses == 3), "\(losses)")
  }
}

/// Freezes at a satellite's round trip cannot be helped, but nothing is late by more for that.
@Test func theWaitIsBounded() {
  var call = VideoSimulation(
    seed: 4, network: .init(loss: 0.02, delay: .milliseconds(350)))
  call.run(for: .seconds(30))
  #expect(call.receiver.neededAudioDelay(at: call.now) == .milliseconds(50))
  let longest = call.shown.map(\.delay).max() ?? .zero
  #expect(longest > .milliseconds(450) && longest <= .milliseconds(500), "\(longest)")
}
