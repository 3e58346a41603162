import Glibc
import MusterBase
import MusterCodecs
import MusterCore
import MusterMedia
import MusterPipeline
import Testing

/// A member that sends a tone of 440 Hz, whose playout is selected or not frame by frame.
private struct Tone {
  static let amplitude = 8_000.0
  private let amplitude: Double
  private let leastDelay: Duration
  private let encoder: OpusEncoder
  private var member = MemberPlayout()
  private var frame = 0
  /// The timestamps of the frames that were decoded.
  private(set) var decoded: [UInt32] = []

  init(amplitude: Double = Tone.amplitude, leastDelay: Duration = .zero) throws {
    self.amplitude = amplitude
    self.leastDelay = leastDelay
    encoder = try OpusEncoder()
  }

  var lost: UInt64 { member.statistics.lost }
  var loudestLevel: UInt8? { member.loudestLevel }

  /// The samples mixed in the next 20 ms; nil if there are none.
  mutating func next(isMixed: Bool, isRecorded: Bool = false) throws -> [Int16]? {
    let now = Instant.zero + .milliseconds(20 * frame)
    let pcm = (0..<960).map { sample in
      Int16(amplitude * sin(2 * .pi * 440 * Double(frame * 960 + sample) / 48_000))
    }
    member.insert(
      ReceivedAudio(
        sequence: UInt16(frame), timestamp: UInt32(960 * frame), level: 15,
        payload: try encoder.encode(pcm), capturedAt: now, repairTime: nil, leastDelay: leastDelay),
      at: now)
    frame += 1
    let output = try member.next(at: now, isMixed: isMixed, isRecorded: isRecorded)
    decoded += output.decoded.map(\.timestamp)
    return output.mixed
  }
}

/// The largest step from one sample to the next.
private func largestStep(_ pcm: [Int16]) -> Int {
  zip(pcm, pcm.dropFirst()).map { abs(Int($0) - Int($1)) }.max() ?? 0
}

@Test func whatIsNeitherMixedNorRecordedIsNotDecoded() throws {
  var tone = try Tone()
  for _ in 0..<50 { #expect(try tone.next(isMixed: false) == nil) }
  #expect(tone.decoded.isEmpty)
  // Its buffer goes on all the same, so that what is mixed later is up to date.
  #expect(try tone.next(isMixed: true) != nil)
  let first = try #require(tone.decoded.first)
  #expect((46 * 960...49 * 960).contains(first) && tone.lost == 0)
}

@Test func aMemberIsHeardInSyncWithItsVideo() throws {
  for (delay, frames) in [(0, 3), (250, 12)] {
    var tone = try Tone(leastDelay: .milliseconds(delay))
    let first = try (0..<50).first { _ in try tone.next(isMixed: true) != nil }
    #expect(first.map { abs($0 - frames) <= 1 } == true, "\(delay) ms: \(first ?? -1)")
  }
}

@Test func falseLevelsDoNotKeepOthersFromBeingHeard() throws {
  // Five members claim the same level. The first three send next to nothing.
  var members = try (0..<5).map { try Tone(amplitude: $0 < 3 ? 10 : Tone.amplitude) }
  var selection = AudioSelection<Int>()
  var mixed: [[Bool]] = []
  for _ in 0..<300 {
    let isMixed = selection.update(members.indices.map { ($0, members[$0].loudestLevel) })
    for index in members.indices { _ = try members[index].next(isMixed: isMixed[index]) }
    mixed.append(isMixed)
  }
  #expect(mixed[5][0...2] == [true, true, true])
  #expect(mixed[100...].allSatisfy { $0[3] && $0[4] })
}

@Test func recordingsAreComplete() throws {
  var tone = try Tone()
  for frame in 0..<100 {
    let mixed = try tone.next(isMixed: (40..<60).contains(frame), isRecorded: true)
    #expect((mixed != nil) == (40...60).contains(frame))
  }
  let first = try #require(tone.decoded.first)
  #expect(tone.decoded.count > 90 && tone.lost == 0)
  #expect(tone.decoded == tone.decoded.indices.map { first + UInt32(960 * $0) })
}

@Test func membersComeAndGoWithoutClicks() throws {
  var tone = try Tone()
  var heard: [Int16] = []
  var powers: [Double] = []
  let silence = [Int16](repeating: 0, count: 960)
  for frame in 0..<400 {
    let isMixed = frame % 20 >= 8
    let mixed = try tone.next(isMixed: isMixed)
    heard += mixed ?? silence
    // The tone is there from the second frame on.
    if isMixed, frame > 20, frame % 20 >= 9 {
      powers.append(heard.suffix(960).reduce(0.0) { $0 + Double($1) * Double($1) } / 960)
    }
  }
  // The steps of the tone itself are at most 461; a cut in it would be one of up to 8,000.
  #expect(largestStep(heard) < 700)
  let expected = Tone.amplitude * Tone.amplitude / 2
  #expect(powers.allSatisfy { (0.7 * expected...1.4 * expected).contains($0) })
}
