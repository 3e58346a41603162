import MusterBase
import MusterMedia
import MusterWire
import Testing

private struct Reception {
  var receiver = AudioReceiver(ssrc: 1)
  var now = Instant.milliseconds(1000)
  var roundTrip = Duration.milliseconds(40)

  /// The number of times that a packet is passed on.
  @discardableResult
  mutating func receive(_ sequence: UInt16) -> Int {
    let header = RTPHeader(
      marker: false, payloadType: PayloadType.opus, sequence: sequence,
      timestamp: UInt32(sequence) * 960, ssrc: 1)
    return receiver.receive(RTPPacket(header: header, payload: []), at: now).count
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
  // Every 24 ms, in steps of 6 ms of the clock.
  #expect(
    reception.requests()
      == Dictionary(
        uniqueKeysWithValues: [5, 32, 56, 80, 104, 128, 152].map { ($0, [65_535, 0]) }))
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

@Test func audioIsPassedOnOnce() {
  var reception = Reception()
  let passedOn = [1, 2, 4, 4, 3, 3, 6, 2, 5, 5].map { reception.receive($0) }
  #expect(passedOn == [1, 1, 1, 0, 1, 0, 1, 0, 1, 0])
}

@Test func whatComesASecondLaterIsTooLate() {
  var reception = Reception()
  for sequence: UInt16 in [1, 3] { reception.receive(sequence) }
  reception.now = reception.now + .milliseconds(1100)
  let passedOn = [4, 2].map { reception.receive($0) }
  #expect(passedOn == [1, 0])
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

/// Playout stops for the time of a retransmission, before the buffer has grown for it.
@Test func theFirstBurstIsNotMissing() {
  for burst in 1...6 {
    var call = AudioSimulation(seed: 40)
    call.roundTrip = .milliseconds(40)
    _ = call.run(for: .seconds(10))
    call.burst = burst
    let played = call.run(for: .seconds(5))
    #expect(call.buffer.statistics.lost == 0, "\(burst)")
    #expect(played.concealed + played.silent <= burst + 3, "\(burst)")
    #expect(call.buffer.currentDelay <= .milliseconds(70), "\(burst)")
  }
}

/// As to a sender that does not retransmit because of a queue.
@Test func playoutDoesNotWaitForRetransmissionsThatDoNotCome() {
  var call = AudioSimulation(seed: 41)
  call.loss = 0.1
  call.roundTrip = .milliseconds(40)
  call.retransmits = false
  _ = call.run(for: .seconds(2))
  let played = call.run(for: .seconds(60))
  #expect(call.buffer.targetDelay <= .milliseconds(60))
  #expect(call.buffer.currentDelay <= .milliseconds(80))
  #expect(played.recovered > 150)
  #expect(call.buffer.statistics.shortened < 30)
  // Once one comes, it waits again.
  call.loss = 0
  call.retransmits = true
  for burst in [1, 6] {
    _ = call.run(for: .seconds(60))
    let lost = call.buffer.statistics.lost
    call.burst = burst
    _ = call.run(for: .seconds(2))
    #expect(burst == 1 || call.buffer.statistics.lost == lost)
  }
}

/// A sender of audio whose frames carry their number.
struct Speech {
  var sender = AudioSender(ssrc: 1, firstSequence: 65_530)
  var conditions = AudioSender.Conditions(
    roundTrip: .milliseconds(40), queueDelay: .zero, estimate: 1070, spareRate: 1000,
    takesCopies: true, takesLongPackets: true)
  var now = Instant.zero
  var timestamp: UInt32 = .max - 5000
  private var number: UInt8 = 0
  /// The frames of the next long packet.
  private var long: [UInt8] = []

  mutating func report(lossPercent: Double) {
    let block = ReportBlock(
      ssrc: 1, fractionLost: UInt8(lossPercent * 2.56), cumulativeLost: 0, highestSequence: 0,
      jitter: 0, lastReport: 0, delaySinceLastReport: 0)
    for _ in 0..<10 { sender.receive(block, at: .zero) }
  }

  /// The next frame's packet; nil if the frame goes out in a long packet.
  mutating func next() -> RTPPacket? {
    number += 1
    timestamp &+= 960
    sender.adapt(to: conditions, at: now)
    var audio = EncodedAudio(data: [number], level: 30, capturedAt: .zero)
    if !sender.needsLongPackets { long = [] } else { long.append(number) }
    if long.count == EncodedAudio.framesPerLongPacket {
      audio.longPacket = .init(data: long, level: 25)
      long = []
    }
    return sender.send(audio, timestamp: timestamp, at: now).map {
      RTPPacket(header: $0.header, payload: $0.payload)
    }
  }

  /// The packets of this many frames.
  mutating func packets(_ frames: Int) -> [RTPPacket] { (0..<frames).compactMap { _ in next() } }

  /// Whether the packets from now on have copies.
  mutating func hasCopies() -> Bool {
    packets(3).last?.header.payloadType == PayloadType.redundantAudio
  }

  /// Whether the packets have copies once this loss has been reported.
  mutating func hasCopies(afterLossOf percent: Double) -> Bool {
    report(lossPercent: percent)
    return hasCopies()
  }
}

@Test func copiesFollowTheLossThatTheReceiverReports() {
  var speech = Speech()
  let copies = [0, 7.0, 9, 5, 3, 7].map { speech.hasCopies(afterLossOf: $0) }
  #expect(copies == [false, false, true, true, false, false])
  // There is no time for two requests.
  speech.conditions.roundTrip = .milliseconds(100)
  let withOneRequest = [1.5, 2.5, 1.5, 0.5].map { speech.hasCopies(afterLossOf: $0) }
  #expect(withOneRequest == [false, true, true, false])
  // There is no time for one either.
  speech.conditions.roundTrip = .milliseconds(300)
  let withoutRequests = [0, 2, 0.4, 0].map { speech.hasCopies(afterLossOf: $0) }
  #expect(withoutRequests == [false, true, true, false])
}

/// Repair would fill a queue further that loses the packets.
@Test func nothingIsRepairedWhereThereIsAQueue() {
  var speech = Speech()
  speech.report(lossPercent: 20)
  var copies: [Bool] = []
  var retransmissions: [Int] = []
  for (second, milliseconds) in [(0, 50), (1, 60), (2, 0), (10, 0), (11, 0)] {
    speech.now = .zero + .seconds(second)
    speech.conditions.queueDelay = .milliseconds(milliseconds)
    copies.append(speech.hasCopies())
    let lost = speech.packets(1).map(\.header.sequence)
    retransmissions.append(
      speech.sender.retransmissions(
        of: lost, roundTrip: speech.conditions.roundTrip, at: speech.now
      ).count)
  }
  #expect(copies == [true, false, false, false, true])
  #expect(retransmissions == [1, 0, 1, 1, 1])
}

@Test func copiesKeepToTheRoomAndTheReceiver() {
  var speech = Speech()
  speech.report(lossPercent: 20)
  var found: [Bool] = []
  for spareRate in [60, 70, 40, 30, 60, nil] {
    speech.conditions.spareRate = spareRate
    found.append(speech.hasCopies())
  }
  #expect(found == [false, true, true, false, false, true])
  speech.conditions.takesCopies = false
  let isIgnored = !speech.hasCopies()
  #expect(isIgnored)
}

@Test func copiesReplaceWhatIsMissing() {
  var speech = Speech()
  speech.report(lossPercent: 20)
  var receiver = AudioReceiver(ssrc: 1)
  let packets = speech.packets(20)
  var heard: [UInt8] = []
  var timestamps: [UInt32] = []
  var sequences: [UInt16] = []
  // Each copy is of the packet before the last: of those from 13 to 16, two come in no packet.
  for (index, packet) in packets.enumerated() where ![5, 8, 9, 13, 14, 15, 16].contains(index) {
    for arrival in receiver.receive(packet, at: .milliseconds(20 * index)) {
      heard += arrival.payload
      timestamps.append(arrival.timestamp)
      sequences.append(arrival.sequence)
    }
  }
  #expect(heard == [1, 2, 3, 4, 5, 7, 6, 8, 9, 11, 10, 12, 13, 16, 18, 17, 19, 20])
  for (position, number) in heard.enumerated() {
    #expect(timestamps[position] == packets[Int(number) - 1].header.timestamp)
    #expect(sequences[position] == packets[Int(number) - 1].header.sequence)
  }
  let original = receiver.receive(packets[8], at: .milliseconds(400))
  #expect(original.isEmpty, "of which there was a copy")
  let missing = receiver.missing(roundTrip: .milliseconds(40), at: .milliseconds(400))
  #expect(missing == [13, 14].map { packets[$0].header.sequence })
  let block = receiver.reportBlock(at: .milliseconds(400))
  #expect(block.cumulativeLost == 6)
}

@Test func copiesBetweenPacketsAreIgnored() {
  for (offset, isCopy): (UInt16, Bool) in [(960, true), (1920, false), (961, false), (0, false)] {
    var receiver = AudioReceiver(ssrc: 1)
    let arrivals = [1, 3].map { (sequence: UInt16) in
      let copy = RedundantAudio.Copy(timestampOffset: offset, payload: [2])
      let payload = RedundantAudio(copies: [copy], primary: [UInt8(sequence)]).encoded()
      let header = RTPHeader(
        marker: false, payloadType: PayloadType.redundantAudio, sequence: sequence,
        timestamp: UInt32(sequence) * 960, ssrc: 1)
      return receiver.receive(RTPPacket(header: header, payload: payload[...]), at: .zero)
    }
    #expect(arrivals.joined().flatMap(\.payload) == (isCopy ? [1, 2, 3] : [1, 3]), "\(offset)")
  }
}

/// As much as was sent within a second, however much the receiver requests.
@Test func retransmissionsHaveABudget() {
  var sender = AudioSender(ssrc: 1, firstSequence: 0)
  for number in 0..<50 {
    let at = Instant.milliseconds(20 * number)
    let audio = EncodedAudio(data: [UInt8](repeating: 1, count: 200), level: 30, capturedAt: at)
    _ = sender.send(audio, timestamp: UInt32(number) * 960, at: at)
  }
  let repeated = [970, 990, 1010].map { milliseconds in
    sender.retransmissions(
      of: Array(0..<50), roundTrip: .milliseconds(20), at: .milliseconds(milliseconds)
    ).count
  }
  #expect(repeated == [32, 18, 0])
}

/// The packet after the next one may have a copy of what is missing.
@Test func aRequestWaitsForTheCopy() {
  var speech = Speech()
  speech.report(lossPercent: 20)
  let packets = speech.packets(6)
  var receiver = AudioReceiver(ssrc: 1)
  for index in [0, 1, 2] { _ = receiver.receive(packets[index], at: .milliseconds(20 * index)) }
  _ = receiver.receive(packets[4], at: .milliseconds(80))
  #expect(receiver.deadline == .milliseconds(105))
  _ = receiver.receive(packets[5], at: .milliseconds(100))
  #expect(receiver.deadline == nil)
}

@Test func nothingIsCopiedAcrossAPause() {
  var speech = Speech()
  speech.report(lossPercent: 20)
  let hasCopies = speech.hasCopies()
  #expect(hasCopies)
  speech.timestamp &+= 48_000
  let kinds = speech.packets(4).map(\.header.payloadType)
  #expect(kinds.map { $0 == PayloadType.redundantAudio } == [false, false, true, true])
}
