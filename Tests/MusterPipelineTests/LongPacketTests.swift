import Glibc
import MusterBase
import MusterCodecs
import MusterCore
import MusterMedia
import MusterPipeline
import Testing

/// 20 ms of a tone of 440 Hz.
private func tone(_ frame: Int) -> [Int16] {
  (0..<960).map { Int16(8_000 * sin(2 * .pi * 440 * Double(frame * 960 + $0) / 48_000)) }
}

@Test func everyThirdFrameEndsAPacketOfOneSize() throws {
  var encoder = try LongPacketEncoder()
  var ends: [Int] = []
  for frame in 0..<300 {
    let pcm = frame < 150 ? tone(frame) : [Int16](repeating: 0, count: 960)
    // The source pauses for 100 ms before this frame.
    let pause = frame >= 100 ? 100 : 0
    let packet = try encoder.encode(
      pcm, level: UInt8(100 - frame % 3), capturedAt: .zero + .milliseconds(20 * frame + pause))
    guard let packet else { continue }
    ends.append(frame)
    // The loudest of the three, which are not always the same three numbers.
    #expect(packet.data.count == 120 && packet.level == 98)
  }
  #expect(ends == Array(stride(from: 2, to: 100, by: 3)) + Array(stride(from: 102, to: 300, by: 3)))
}

@Test func longPacketsArePlayed() throws {
  var encoder = try LongPacketEncoder()
  var member = MemberPlayout()
  var heard: [Int16] = []
  var sequence: UInt16 = 0
  for frame in 0..<120 {
    let now = Instant.zero + .milliseconds(20 * frame)
    let packet = try encoder.encode(tone(frame), level: 20, capturedAt: now)
    if let packet {
      let timestamp = UInt32(960 * (frame - 2))
      member.insert(
        ReceivedAudio(
          sequence: sequence, timestamp: timestamp, level: packet.level, payload: packet.data,
          capturedAt: nil, repairTime: nil),
        at: now)
      sequence += 1
    }
    let silence = [Int16](repeating: 0, count: 960)
    heard += try member.next(at: now, isMixed: true, isRecorded: false).mixed ?? silence
  }
  #expect(member.statistics.lost == 0 && member.statistics.received == 120)
  // After half a second, the tone without a gap: each 10 ms have its power.
  for start in stride(from: 24_000, to: heard.count - 480, by: 480) {
    let power = heard[start..<start + 480].reduce(0.0) { $0 + Double($1) * Double($1) } / 480
    #expect((16_000_000...48_000_000).contains(power), "\(start)")
  }
}
