import MusterBase
import MusterMedia
import MusterWire
import Testing

private struct Reception {
  var receiver = AudioReceiver(ssrc: 1)
  var now = Instant.milliseconds(1000)
  var roundTrip = Duration.milliseconds(40)

  mutating func receive(_ sequence: UInt16) {
    let header = RTPHeader(
      marker: false, payloadType: PayloadType.opus, sequence: sequence,
      timestamp: UInt32(sequence) * 960, ssrc: 1)
    receiver.receive(header, at: now)
  }

  /// The requests of the next second: the times in milliseconds, and the sequence numbers.
  mutating func requests() -> [Int: [UInt16]] {
    var found: [Int: [UInt16]] = [:]
    let start = now
    while let deadline = receiver.deadline, deadline < start + .seconds(1) {
      now = max(now, deadline)
      let missing = receiver.missing(roundTrip: roundTrip, at: now)
      if !missing.isEmpty { found[Int((now - start) / .milliseconds(1))] = missing }
    }
    now = start + .seconds(1)
    return found
  }
}

@Test func missingAudioIsRequestedAsLongAsItWouldBePlayed() {
  var reception = Reception()
  for sequence: UInt16 in [65_533, 65_534, 1] { reception.receive(sequence) }
  #expect(
    reception.requests() == [
      5: [65_535, 0], 53: [65_535, 0], 101: [65_535, 0], 149: [65_535, 0],
    ])
  reception.receive(3)
  reception.now = reception.now + .milliseconds(4)
  reception.receive(2)
  #expect(reception.requests().isEmpty, "a reordered packet")
  reception.roundTrip = .milliseconds(190)
  reception.receive(5)
  #expect(reception.requests() == [5: [4]])
  reception.roundTrip = .milliseconds(196)
  reception.receive(7)
  #expect(reception.requests().isEmpty)
}

@Test func aLongGapOfAudioIsNotRequested() {
  var reception = Reception()
  reception.receive(100)
  reception.receive(133)
  #expect(reception.requests().values.map(\.count).max() == 32)
  reception.receive(167)
  #expect(reception.requests().isEmpty)
  // The sender restarted: what is missing in between does not exist.
  reception.receive(40_000)
  reception.receive(40_001)
  #expect(reception.requests().isEmpty)
  reception.receive(40_003)
  #expect(reception.requests()[5] == [40_002])
}

@Test func retransmittedAudioCountsAsLost() {
  var reception = Reception()
  for sequence in UInt16(0)..<50 where sequence % 10 != 5 { reception.receive(sequence) }
  _ = reception.requests()
  for sequence: UInt16 in [5, 15, 25, 35, 45] { reception.receive(sequence) }
  let block = reception.receiver.reportBlock(at: reception.now)
  #expect(block.cumulativeLost == 5)
  #expect(block.fractionLost == 256 * 5 / 50)
  #expect(reception.requests().isEmpty)
}

@Test(arguments: UInt64(0)..<8) func hostileSequencesAreRequestedWithinBounds(seed: UInt64) {
  var random = PRNG(seed: seed)
  var reception = Reception()
  for _ in 0..<2000 {
    reception.receive(UInt16(truncatingIfNeeded: random.next()))
    reception.receive(UInt16(random.below(100)))
    let missing = reception.receiver.missing(
      roundTrip: .milliseconds(random.below(300)), at: reception.now)
    #expect(missing.count <= Limits.nackEntries)
    reception.now = reception.now + .milliseconds(random.below(20))
  }
}

/// The share of the audio that may be missing after repair, in percent.
private let cases = [(1.0, 0.1), (5, 0.2), (10, 0.5), (20, 2)]

@Test(arguments: cases) func lostAudioIsRetransmitted(loss: Double, missing: Double) {
  for seed in UInt64(0)..<5 {
    var call = AudioSimulation(seed: seed)
    call.loss = loss / 100
    call.roundTrip = .milliseconds(40)
    _ = call.run(for: .seconds(20))
    let (before, sent) = (call.buffer.statistics.lost, call.sent)
    _ = call.run(for: .seconds(120))
    let lost = 100 * Double(call.buffer.statistics.lost - before) / Double(call.sent - sent)
    #expect(lost <= missing, "seed \(seed)")
  }
}

@Test func theDelayGrowsForRetransmissionsAndShrinksAgain() {
  var call = AudioSimulation(seed: 9)
  call.roundTrip = .milliseconds(40)
  call.loss = 0.1
  _ = call.run(for: .seconds(20))
  // Up to three attempts: 20 ms until the next packet, 5 ms, a round trip, and twice 48 ms.
  #expect(call.buffer.targetDelay >= .milliseconds(110))
  #expect(call.buffer.targetDelay <= .milliseconds(240))
  #expect(call.requested > 50)
  call.loss = 0
  _ = call.run(for: .seconds(120))
  #expect(call.buffer.targetDelay <= .milliseconds(40))
  #expect(call.buffer.currentDelay <= .milliseconds(70))
}
