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

@Test func uselessPicturesAreRefused() {
  var packetizer = VideoPacketizer(layer: 1, seed: 1)
  let refused = [
    encoded(0, layer: 1), encoded(Limits.frameBytes + 1, layer: 1), encoded(10, layer: 0),
  ].map { packetizer.packetize($0) }
  #expect(refused.allSatisfy { $0 == nil })
}

@Test func descriptorsCountPicturesBasePicturesAndKeyframes() throws {
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

@Test func pictureNumbersWrapAtFifteenBits() throws {
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
  let start = Instant.milliseconds(1000)
  let headers = (0..<4).map { number in
    sender.send([UInt8(number)], marker: number == 3, timestamp: 9, audioLevel: nil, at: start)
  }
  #expect(headers.map(\.sequence) == [65_534, 65_535, 0, 1])
  let roundTrip = Duration.milliseconds(40)
  func again(_ sequences: [UInt16], _ milliseconds: Int) -> [UInt8] {
    sender.retransmissions(
      of: sequences, roundTrip: roundTrip, at: start + .milliseconds(milliseconds)
    ).map { $0.payload[0] }
  }
  #expect(again([65_535, 1, 77], 30) == [1, 3])
  #expect(again([65_535, 0], 40) == [2])
  #expect(again([65_535], 78) == [1])
  #expect(again([65_534], 1001).isEmpty)
  #expect(sender.packets == 4)
  #expect(sender.packetsRepeated == 4)
}

@Test func historyForgetsTheOldestAndRepeatsHaveABudget() {
  var sender = RTPSender(payloadType: 100, ssrc: 5, firstSequence: 0, historyCapacity: 500)
  let start = Instant.milliseconds(1000)
  for _ in 0..<600 {
    _ = sender.send([1], marker: true, timestamp: 0, audioLevel: nil, at: start)
  }
  let tooOld = sender.retransmissions(of: [0, 99], roundTrip: .zero, at: start)
  #expect(tooOld.isEmpty)
  let burst = sender.retransmissions(of: Array(100..<350), roundTrip: .zero, at: start)
  #expect(burst.count == 64)
  let later = sender.retransmissions(
    of: Array(350..<600), roundTrip: .zero, at: start + .milliseconds(100))
  #expect((31...33).contains(later.count))
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

@Test func keyframesOfALayerAreMadeOncePer300Milliseconds() {
  var limiter = KeyframeLimiter()
  var made: [Int] = []
  for time in stride(from: 0, to: 2000, by: 10) {
    let now = Instant.milliseconds(time)
    if limiter.tick(at: now) { made.append(time) }
    if time % 50 == 0, limiter.request(at: now) { made.append(time) }
  }
  #expect(made == [0, 300, 600, 900, 1200, 1500, 1800])
}

@Test func aRequestThatCrossedTheKeyframeIsAnswered() {
  var limiter = KeyframeLimiter()
  let first = limiter.request(roundTrip: .milliseconds(80), at: .milliseconds(0))
  let crossed = limiter.request(roundTrip: .milliseconds(80), at: .milliseconds(70))
  #expect(first)
  #expect(!crossed)
  #expect(limiter.deadline == nil)
  let later = limiter.request(roundTrip: .milliseconds(80), at: .milliseconds(90))
  #expect(!later)
  #expect(limiter.deadline == .milliseconds(300))
}
