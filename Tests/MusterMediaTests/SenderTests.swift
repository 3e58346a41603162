import MusterBase
import MusterMedia
import MusterWire
import Testing

private func encoded(
  _ count: Int, keyframe: Bool = false, temporalLayer: Int = 0, isReference: Bool = true,
  layer: Int = 0
) -> EncodedFrame {
  EncodedFrame(
    data: (0..<count).map { UInt8(truncatingIfNeeded: $0) }, isKeyframe: keyframe, layer: layer,
    temporalLayer: temporalLayer, isReference: isReference, capturedAt: .milliseconds(2000))
}

private func parsed(_ payload: ArraySlice<UInt8>) throws -> (VP8Descriptor, [UInt8]) {
  var reader = Reader(payload)
  let descriptor = try VP8Descriptor(reading: &reader)
  return (descriptor, Array(reader.rest()))
}

/// One size for a segmented send; the last part is shorter by less than a byte for each part.
@Test func framesAreCutIntoEqualPartsThatFit() throws {
  for count in [1, 100, 1094, 1095, 2188, 2189, 20_000, Limits.frameBytes] {
    var packetizer = VideoPacketizer(layer: 0, seed: 1)
    let packetized = packetizer.packetize(encoded(count))
    let frame = try #require(packetized)
    let sizes = frame.payloads.map(\.count)
    #expect(sizes.allSatisfy { $0 <= Limits.rtpPayloadBytes })
    #expect(Set(sizes.dropLast()).count <= 1)
    #expect((sizes.first ?? 0) - (sizes.last ?? 0) < max(sizes.count, 1))
    #expect(frame.timestamp == 180_000)
    var joined: [UInt8] = []
    for (index, payload) in frame.payloads.enumerated() {
      let (descriptor, data) = try parsed(payload)
      #expect(descriptor.isFrameStart == (index == 0))
      joined += data
    }
    #expect(joined == encoded(count).data)
  }
}

@Test func uselessFramesAreRefused() {
  var packetizer = VideoPacketizer(layer: 1, seed: 1)
  let refused = [
    encoded(0, layer: 1), encoded(Limits.frameBytes + 1, layer: 1), encoded(10, layer: 0),
  ].map { packetizer.packetize($0) }
  #expect(refused.allSatisfy { $0 == nil })
}

@Test func descriptorsCountFramesBaseFramesAndKeyframes() throws {
  var packetizer = VideoPacketizer(layer: 0, seed: 9)
  let pattern: [(keyframe: Bool, layer: Int, isReference: Bool)] = [
    (true, 0, true), (false, 2, false), (false, 1, true), (false, 2, false),
    (false, 0, true), (false, 2, false), (true, 0, true),
  ]
  let descriptors = try pattern.map { entry in
    let frame = packetizer.packetize(
      encoded(
        10, keyframe: entry.keyframe, temporalLayer: entry.layer, isReference: entry.isReference))
    return try parsed(try #require(frame).payloads[0]).0
  }
  let first = descriptors[0]
  let frames = descriptors.map { (($0.pictureID ?? 0) &- (first.pictureID ?? 0)) & 0x7FFF }
  #expect(frames == [0, 1, 2, 3, 4, 5, 6])
  let bases = descriptors.map { ($0.tl0PicIdx ?? 0) &- (first.tl0PicIdx ?? 0) }
  #expect(bases == [0, 0, 0, 0, 1, 1, 2])
  let keys = descriptors.map { (($0.keyIndex ?? 0) &- (first.keyIndex ?? 0)) & 0x1F }
  #expect(keys == [0, 0, 0, 0, 0, 0, 1])
  #expect(descriptors.map(\.isLayerSync) == [false, true, true, false, false, true, false])
  #expect(descriptors.map(\.isNonReference) == [false, true, false, true, false, true, false])
}

@Test func thePictureIDWrapsAtFifteenBits() throws {
  var packetizer = VideoPacketizer(layer: 0, seed: 4)
  var last: UInt16?
  for _ in 0..<0x8002 {
    let packetized = packetizer.packetize(encoded(1))
    let payload = try #require(packetized).payloads[0]
    let id = try #require(try parsed(payload).0.pictureID)
    if let last { #expect(id == (last + 1) & 0x7FFF) }
    last = id
  }
}

@Test func retransmissionsAreTheSamePacketsWithinTheirTime() {
  var sender = RTPSender(payloadType: 100, ssrc: 5, firstSequence: 65_534, historyCapacity: 8)
  var budget = RetransmissionBudget()
  let start = Instant.milliseconds(1000)
  let headers = (0..<4).map { number in
    sender.send([UInt8(number)], marker: number == 3, timestamp: 9, audioLevel: nil, at: start)
  }
  #expect(headers.map(\.sequence) == [65_534, 65_535, 0, 1])
  func again(_ sequences: [UInt16], _ milliseconds: Int) -> [UInt8] {
    sender.retransmissions(
      of: sequences, roundTrip: .milliseconds(40), within: &budget,
      at: start + .milliseconds(milliseconds)
    ).map { $0.payload[0] }
  }
  #expect(again([65_535, 1, 77], 30) == [1, 3])
  #expect(again([65_535, 0], 69) == [2])
  #expect(again([65_535], 70) == [1])
  for milliseconds in [110, 150, 190] { #expect(again([65_535], milliseconds) == [1]) }
  // Five times is enough.
  #expect(again([65_535], 230).isEmpty)
  // The keyframe that is requested 250 ms after the first NACK, here at 69 ms, takes as long again.
  #expect(again([0], 569) == [2])
  #expect(again([0], 610).isEmpty)
  #expect(again([65_534], 1000) == [0])
  #expect(again([65_534], 1040).isEmpty)
  #expect(sender.packets == 4)
  #expect(sender.packetsRepeated == 9)
}

/// A packet that has expired has waited for room: there is none for a retransmission either.
@Test func anExpiredPacketIsNotRetransmitted() {
  var sender = RTPSender(payloadType: 100, ssrc: 5, firstSequence: 65_535, historyCapacity: 8)
  var budget = RetransmissionBudget()
  let start = Instant.milliseconds(1000)
  for _ in 0..<3 {
    _ = sender.send([1], marker: true, timestamp: 9, audioLevel: nil, at: start)
  }
  for sequence in [0, 70] as [UInt16] { sender.expired(sequence) }
  let again = sender.retransmissions(
    of: [65_535, 0, 1], roundTrip: .zero, within: &budget, at: start)
  #expect(again.map(\.header.sequence) == [65_535, 1])
}

@Test func theHistoryForgetsTheOldest() {
  var sender = RTPSender(payloadType: 100, ssrc: 5, firstSequence: 0, historyCapacity: 500)
  var budget = RetransmissionBudget()
  let start = Instant.milliseconds(1000)
  for _ in 0..<600 {
    _ = sender.send([1], marker: true, timestamp: 0, audioLevel: nil, at: start)
  }
  let again = sender.retransmissions(
    of: [0, 99, 100], roundTrip: .zero, within: &budget, at: start)
  #expect(again.map(\.header.sequence) == [100])
}

@Test func retransmissionsAreAtMostWhatIsSent() {
  for seed in UInt64(0)..<50 {
    var random = PRNG(seed: seed)
    var budget = RetransmissionBudget()
    var log: [(at: Instant, sent: Int, again: Int)] = []
    var now = Instant.milliseconds(random.below(5000))
    for _ in 0..<600 {
      now = now + .milliseconds(random.below(40))
      let (size, wanted) = (random.below(500), random.below(1500))
      if random.chance(0.7) { budget.sent(size, at: now) } else { continue }
      let isAllowed = budget.take(wanted, isBase: true, at: now)
      log.append((now, size, isAllowed ? wanted : 0))
      guard isAllowed else { continue }
      // Whole slots count, between 0.9 and 1 s.
      let again = log.filter { now - $0.at < .milliseconds(900) }.reduce(0) { $0 + $1.again }
      let sent = log.filter { now - $0.at <= .seconds(1) }.reduce(0) { $0 + $1.sent }
      #expect(again <= max(sent, 2 * 1100), "seed \(seed), \(now)")
    }
    // The limit is used, not just kept.
    let (sent, again) = log.reduce((0, 0)) { ($0.0 + $1.sent, $0.1 + $1.again) }
    #expect(again * 4 > sent * 3, "seed \(seed)")
  }
}

@Test func aStreamThatHardlySendsHasTwoRetransmissionsASecond() {
  var budget = RetransmissionBudget()
  let start = Instant.milliseconds(1000)
  func taken(_ milliseconds: Int) -> Int {
    (0..<5).count { _ in budget.take(1100, isBase: true, at: start + .milliseconds(milliseconds)) }
  }
  #expect(taken(0) == 2)
  #expect(taken(800) == 0)
  #expect(taken(1000) == 2)
}

@Test func aQuarterOfTheBudgetIsForTheBaseLayer() {
  var budget = RetransmissionBudget()
  let now = Instant.milliseconds(1000)
  budget.sent(100_000, at: now)
  #expect((0..<100).count { _ in budget.take(1000, isBase: false, at: now) } == 75)
  #expect((0..<100).count { _ in budget.take(1000, isBase: true, at: now) } == 25)
}

@Test func roundTripAndLossComeFromReports() {
  var sender = RTPSender(payloadType: 100, ssrc: 5, firstSequence: 0, historyCapacity: 8)
  let report = sender.report(at: .milliseconds(10_000), timestamp: 3)
  func block(ssrc: UInt32, delay: UInt32) -> ReportBlock {
    ReportBlock(
      ssrc: ssrc, fractionLost: 128, cumulativeLost: 0, highestSequence: 0, jitter: 4,
      lastReport: RTPTime.compact(report.ntpTime), delaySinceLastReport: delay)
  }
  sender.receive(block(ssrc: 6, delay: 0), at: .milliseconds(10_090))
  #expect(sender.roundTrip == nil)
  sender.receive(block(ssrc: 5, delay: 0x10000 / 20), at: .milliseconds(10_090))
  let error = sender.roundTrip.map { ($0 - .milliseconds(40)).wholeNanoseconds }
  #expect(error.map { abs($0) < 100_000 } == true)
  #expect(sender.lossPercent == 25)
  sender.receive(block(ssrc: 5, delay: .max), at: .milliseconds(10_090))
  sender.receive(block(ssrc: 5, delay: 0x8000_0000), at: .milliseconds(10_090))
  #expect(sender.roundTrip.map { $0 < .seconds(10) } == true)
}
