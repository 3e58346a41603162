import MusterBase
import MusterMedia
import MusterWire
import Testing

@Test func sequencesUnwrapAroundTheCircle() {
  let cases: [(sequences: [UInt16], steps: [Int64])] = [
    ([65_534, 65_535, 0, 1], [0, 1, 2, 3]),
    ([1, 0, 65_535], [0, -1, -2]),
    ([0, 32_767, 65_534, 32_765], [0, 32_767, 65_534, 98_301]),
    ([10, 10, 10], [0, 0, 0]),
    ([65_535, 2, 65_534, 3], [0, 3, -1, 4]),
  ]
  for (sequences, steps) in cases {
    var unwrapper = SequenceUnwrapper()
    let values = sequences.map { unwrapper.unwrap($0) }
    #expect(values.map { $0 - values[0] } == steps, "\(sequences)")
    #expect(values.allSatisfy { $0 > 0 })
  }
}

@Test func timestampsAndNTPTimesFollowTheClock() {
  let cases: [(nanoseconds: Int64, video: UInt32, audio: UInt32)] = [
    (0, 0, 0),
    (1_000_000_000, 90_000, 48_000),
    (20_000_000, 1800, 960),
    (47_721_858_844_444, 0, 2_290_649_224),
  ]
  for (nanoseconds, video, audio) in cases {
    let instant = Instant(nanoseconds: nanoseconds)
    let difference = RTPTime.timestamp(of: instant, clockRate: 90_000) &- video
    #expect(difference == 0 || difference == UInt32.max, "\(nanoseconds)")
    let other = RTPTime.timestamp(of: instant, clockRate: 48_000) &- audio
    #expect(other <= 1 || other >= UInt32.max - 1, "\(nanoseconds)")
    let back = RTPTime.instant(ofNTP: RTPTime.ntp(of: instant))
    #expect(abs(back.nanoseconds - nanoseconds) <= 1, "\(nanoseconds)")
  }
  #expect(RTPTime.compact(RTPTime.ntp(of: .milliseconds(1500))) == 0x1_8000)
  #expect(RTPTime.distance(from: .max, to: 89_999, clockRate: 90_000) == .seconds(1))
  #expect(RTPTime.distance(from: 90_000, to: 0, clockRate: 90_000) == .seconds(-1))
}

@Test func reportsCountLossBeforeRepair() {
  var statistics = RTPReceiverStatistics(clockRate: 90_000)
  let now = Instant.milliseconds(1000)
  for sequence in UInt16(0)..<100 where sequence % 10 != 5 {
    statistics.receive(sequence: sequence &+ 65_500, timestamp: 0, at: now)
  }
  statistics.receive(sequence: 65_505, timestamp: 0, isRetransmission: true, at: now)
  let first = statistics.reportBlock(ssrc: 7, at: now)
  #expect(first.fractionLost == 25)
  #expect(first.cumulativeLost == 10)
  #expect(first.highestSequence == 0x1_0000 + 63)
  for sequence in UInt16(100)..<150 {
    statistics.receive(sequence: sequence &+ 65_500, timestamp: 0, at: now)
  }
  let second = statistics.reportBlock(ssrc: 7, at: now)
  #expect(second.fractionLost == 0)
  #expect(second.cumulativeLost == 10)
}

@Test func jitterFollowsRFC3550() {
  var steady = RTPReceiverStatistics(clockRate: 90_000)
  var shaken = RTPReceiverStatistics(clockRate: 90_000)
  for number in 0..<400 {
    let timestamp = UInt32(number) &* 1800
    let now = Instant.milliseconds(1000 + 20 * number)
    steady.receive(sequence: UInt16(number), timestamp: timestamp, at: now)
    let late = number % 2 == 0 ? now : now + .milliseconds(10)
    shaken.receive(sequence: UInt16(number), timestamp: timestamp, at: late)
  }
  #expect(steady.jitter < .milliseconds(1))
  #expect(shaken.jitter > .milliseconds(9))
  #expect(shaken.jitter < .milliseconds(11))
}

@Test func theDelaySinceTheLastReportIsSignalled() {
  var statistics = RTPReceiverStatistics(clockRate: 90_000)
  let report = SenderReport(
    ssrc: 1, ntpTime: 0x0001_8000_0000, rtpTime: 0, packets: 0, octets: 0, reports: [])
  statistics.receive(report, at: .milliseconds(1000))
  let block = statistics.reportBlock(ssrc: 1, at: .milliseconds(1500))
  #expect(block.lastReport == 0x1_8000)
  #expect(block.delaySinceLastReport == 0x8000)
}

@Test func aSenderStartingAfreshIsNotAThousandLosses() {
  var statistics = RTPReceiverStatistics(clockRate: 90_000)
  let now = Instant.milliseconds(0)
  for sequence in UInt16(0)..<10 { statistics.receive(sequence: sequence, timestamp: 0, at: now) }
  statistics.receive(sequence: 30_000, timestamp: 0, at: now)
  statistics.receive(sequence: 10, timestamp: 0, at: now)
  #expect(statistics.cumulativeLost == 0)
  for sequence in UInt16(20_000)..<20_010 {
    statistics.receive(sequence: sequence, timestamp: 0, at: now)
  }
  #expect(statistics.cumulativeLost == 0)
}

@Test func missingPacketsAreAskedForTwentyTimesAndThenGivenUp() {
  var list = NackList()
  var now = Instant.milliseconds(0)
  var isNoted = list.notice(100..<102, at: now)
  #expect(isNoted)
  #expect(list.deadline == .milliseconds(5))
  let first = list.due(highest: 102, roundTrip: .zero, at: now)
  #expect(first.sequences == [100])
  var asked = 0
  var gaveUp = false
  while let deadline = list.deadline {
    now = deadline
    let due = list.due(highest: 102, roundTrip: .zero, at: now)
    asked += due.sequences.count
    gaveUp = gaveUp || due.gaveUp
  }
  #expect(asked == 39)
  #expect(gaveUp)
  isNoted = list.notice(0..<257, at: now)
  #expect(!isNoted)
  #expect(list.isEmpty)
}

@Test func reorderedPacketsAreNotAskedFor() {
  var list = NackList()
  let now = Instant.milliseconds(0)
  _ = list.notice(5..<6, at: now)
  let due = list.due(highest: 6, roundTrip: .zero, at: now)
  #expect(due.sequences.isEmpty)
  let wasAsked = list.received(5)
  #expect(!wasAsked)
  #expect(list.deadline == nil)
}
