import MusterBase
import MusterMedia
import MusterWire
import Testing

/// 640x360 at 30 frames per second and 700 to 1,000 kbit/s.
private let bitrates: [(base: Int, enhancement: Int, keyframe: Int)] = [
  (6500, 3300, 20_000), (4600, 2300, 14_000),
]

@Test(arguments: [0, 1]) func fivePercentLossNeverFreezesForHalfASecond(rate: Int) {
  var frozen = Duration.zero
  var total = Duration.zero
  var captured = 0
  var delivered = 0
  for seed in UInt64(0)..<16 {
    var call = VideoSimulation(seed: seed, network: .init(loss: 0.05))
    call.frameBytes = bitrates[rate]
    call.run(for: .seconds(20))
    #expect(call.undecodable == 0, "seed \(seed)")
    #expect(call.gaps.allSatisfy { $0 <= .milliseconds(500) }, "seed \(seed)")
    #expect(call.delivered.first.map { $0.at <= .milliseconds(1500) } == true, "seed \(seed)")
    frozen += call.gaps.filter { $0 > .milliseconds(200) }.reduce(.zero, +)
    total += .seconds(20)
    captured += call.captured.count
    delivered += call.delivered.count
  }
  #expect(frozen * 100 <= total, "frozen for \(frozen) of \(total)")
  #expect(delivered * 100 >= captured * 96, "\(delivered) of \(captured)")
}

@Test func lossWithReorderingAndDuplicationStaysDecodable() {
  for seed in UInt64(100)..<112 {
    var call = VideoSimulation(
      seed: seed, network: .init(loss: 0.1, jitter: .milliseconds(15), duplication: 0.05))
    call.run(for: .seconds(10))
    #expect(call.undecodable == 0, "seed \(seed)")
    #expect(call.mostHeld <= Limits.packetsInAssembly, "seed \(seed)")
    #expect(call.delivered.count > 200, "seed \(seed)")
    let ids = call.delivered.map(\.id)
    #expect(zip(ids, ids.dropFirst()).allSatisfy { $0 < $1 }, "seed \(seed)")
  }
}

@Test func aCleanNetworkDeliversEveryFrameWithoutRequests() {
  var call = VideoSimulation(seed: 3, network: .init(delay: .milliseconds(1)))
  call.run(for: .seconds(10))
  #expect(call.delivered.count >= call.captured.count - 1)
  #expect(call.receiver.statistics(at: call.now).packetsRequested == 0)
  #expect(call.receiver.statistics(at: call.now).keyframesRequested == 0)
  #expect(call.receiver.statistics(at: call.now).freezes == 0)
  #expect(call.receiver.statistics(at: call.now).packetsLost == 0)
  #expect(call.receiver.statistics(at: call.now).keyframes == 1)
}

@Test func halfASecondWithoutNetworkHealsByItself() {
  for seed in UInt64(0)..<5 {
    var call = VideoSimulation(seed: seed, network: .init())
    call.run(for: .seconds(3))
    call.network.loss = 1
    call.run(for: .milliseconds(500))
    call.network.loss = 0
    let healed = call.now
    call.run(for: .seconds(3))
    #expect(call.undecodable == 0, "seed \(seed)")
    let first = call.delivered.first { $0.at > healed }
    // A keyframe is requested at once: a packet within 33 ms, then a round trip of 40 ms.
    #expect(first.map { $0.at - healed <= .milliseconds(150) } == true, "seed \(seed)")
    #expect(call.receiver.statistics(at: call.now).freezes >= 1, "seed \(seed)")
    let late = call.delivered.filter { $0.at > healed + .seconds(1) }
    #expect(late.count >= 55, "seed \(seed)")
  }
}

@Test func thirtyPercentLossRecoversAgainAndAgain() {
  for seed in UInt64(0)..<5 {
    var call = VideoSimulation(seed: seed, network: .init(loss: 0.3))
    call.run(for: .seconds(15))
    #expect(call.undecodable == 0, "seed \(seed)")
    #expect(call.gaps.allSatisfy { $0 <= .seconds(3) }, "seed \(seed)")
    #expect(call.delivered.count > 100, "seed \(seed)")
    #expect(call.mostHeld <= Limits.packetsInAssembly, "seed \(seed)")
  }
}
