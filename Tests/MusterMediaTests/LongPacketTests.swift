import MusterBase
import MusterMedia
import MusterWire
import Testing

@Test func packetsAreLongOnANarrowPath() {
  var speech = Speech()
  var lengths: [[Int]] = []
  for (estimate, takes) in [
    (80, true), (79, false), (79, true), (99, true), (100, true), (nil, true), (79, true),
    (99, false),
  ] {
    (speech.conditions.estimate, speech.conditions.takesLongPackets) = (estimate, takes)
    lengths.append(speech.packets(6).map(\.payload.count))
  }
  let short = [1, 1, 1, 1, 1, 1]
  // The packets become long after three frames that are sent by themselves as well.
  let expected = [
    short, short, [1, 1, 1, 3], [3, 3], [3, 1, 1, 1], short, [1, 1, 1, 3], [3, 1, 1, 1],
  ]
  #expect(lengths == expected)
}

@Test func packetsAreLongForLackOfCPUWhereTheReceiverKnowsThem() {
  var speech = Speech()
  var lengths: [[Int]] = []
  for (saves, takes) in [(true, false), (true, true), (true, true), (false, true)] {
    speech.conditions.savesPackets = saves
    speech.conditions.takesLongPackets = takes
    lengths.append(speech.packets(6).map(\.payload.count))
  }
  #expect(lengths == [[1, 1, 1, 1, 1, 1], [1, 1, 1, 3], [3, 3], [3, 1, 1, 1]])
}

/// However often the length of packets changes, and without a loss.
@Test func eachFrameIsSentOnceInOrder() {
  var speech = Speech()
  var random = PRNG(seed: 11)
  var receiver = AudioReceiver(ssrc: 1)
  var buffer = AudioJitterBuffer()
  var heard: [UInt8] = []
  var timestamp: UInt32 = .max - 5000
  for number in 0..<240 {
    let at = Instant.milliseconds(20 * number)
    speech.conditions.estimate = random.chance(0.5) ? 70 : 120
    if let packet = speech.next() {
      #expect(packet.header.timestamp == timestamp &+ 960)
      #expect(packet.header.audioLevel == (packet.payload.count == 1 ? 30 : 25))
      timestamp &+= 960 * UInt32(packet.payload.count)
      for arrival in receiver.receive(packet, at: at) {
        buffer.insert(
          sequence: arrival.sequence, timestamp: arrival.timestamp,
          frames: arrival.payload.map { [$0] }, level: arrival.level, at: at)
      }
    }
    for case .decode(let frame, _) in buffer.next(at: at) { heard += frame }
  }
  #expect(heard.count > 220)
  #expect(heard == (1...UInt8(heard.count)).map { $0 })
  #expect(buffer.statistics.lost == 0 && buffer.statistics.recovered == 0)
}

@Test func noLongPacketHasACopy() {
  var speech = Speech()
  speech.report(lossPercent: 20)
  let hasCopies = speech.hasCopies()
  #expect(hasCopies)
  speech.conditions.estimate = 70
  speech.conditions.spareRate = nil
  let narrow = speech.packets(12).map(\.header.payloadType)
  #expect(narrow.allSatisfy { $0 == PayloadType.opus })
  speech.conditions.estimate = 120
  // No copy of a long packet either.
  let wide = speech.packets(6).map(\.header.payloadType)
  #expect(
    wide == [PayloadType.opus, PayloadType.opus, PayloadType.opus]
      + [PayloadType.redundantAudio])
}

/// A source, some packets of which get lost, and a buffer that plays the others.
private struct LongPackets {
  var buffer = AudioJitterBuffer()
  var played: [AudioJitterBuffer.Playout] = []

  /// Plays packets with these counts of frames, of which some are lost.
  init(_ counts: [Int], lost: [Int], pauseBefore: Int? = nil) {
    var frame = 0
    var samples: UInt32 = 77
    var arrivals: [(at: Instant, sequence: UInt16, timestamp: UInt32, frames: [[UInt8]])] = []
    for (index, count) in counts.enumerated() {
      if index == pauseBefore { samples += 48_000 + 123 }
      let frames = (0..<count).map { [UInt8(truncatingIfNeeded: frame + $0)] }
      frame += count
      let timestamp = samples
      samples += UInt32(960 * count)
      guard !lost.contains(index) else { continue }
      arrivals.append(
        (.milliseconds(1000 + Int(samples) / 48), UInt16(index), timestamp, frames))
    }
    let end = 1000 + Int(samples) / 48 + 200
    for milliseconds in stride(from: 1000, to: end, by: 20) {
      let now = Instant.milliseconds(milliseconds)
      while let next = arrivals.first, next.at <= now {
        arrivals.removeFirst()
        buffer.insert(
          sequence: next.sequence, timestamp: next.timestamp, frames: next.frames, level: 30,
          at: now)
      }
      played += buffer.next(at: now)
    }
  }

  var heard: [UInt8] {
    played.flatMap { if case .decode(let frame, _) = $0 { frame } else { [UInt8]() } }
  }
}

@Test func aLostPacketIsReplacedFrameByFrame() {
  // The second of the lost ones has three frames, which only the timestamps show.
  let counts = [1, 1, 3, 3, 3, 1, 3, 1, 1, 3, 3, 3, 3]
  let call = LongPackets(counts, lost: [5, 6])
  let lost: [UInt8] = [12, 13, 14, 15].map { $0 - 1 }
  let all = (0..<UInt8(counts.reduce(0, +))).filter { !lost.contains($0) }
  #expect(call.heard == all)
  #expect(call.buffer.statistics.lost == 4)
}

/// The frames of a packet arrive together, of which only the first one is late.
@Test func longPacketsNeedNoMoreDelayThanOthers() {
  for count in [1, 3] {
    let call = LongPackets([Int](repeating: count, count: 100), lost: [])
    #expect(call.buffer.targetDelay == .milliseconds(30), "\(count)")
  }
}

@Test func aPauseBetweenLongPacketsIsNoLoss() {
  let counts = [3, 3, 3, 3, 3, 3, 3, 3, 3, 3]
  let call = LongPackets(counts, lost: [], pauseBefore: 5)
  #expect(call.heard == (0..<30).map { $0 })
  #expect(call.buffer.statistics.lost == 0)
}
