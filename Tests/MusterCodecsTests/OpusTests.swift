import Glibc
import MusterBase
import MusterCodecs
import Testing

@Suite struct OpusTests {
  @Test func everyPacketHasTheSameSize() throws {
    let encoder = try OpusEncoder()
    var sizes = [Int]()
    let silence = [Int16](repeating: 0, count: 960)
    for frame in try TestFiles.speech() + [silence, silence, silence] {
      sizes.append(try encoder.encode(frame).count)
    }
    encoder.setExpectedLoss(percent: 20)
    sizes.append(try encoder.encode(silence).count)
    encoder.setQuick(true)
    for frame in try TestFiles.speech() { sizes.append(try encoder.encode(frame).count) }
    // 32 kbit/s for 20 ms.
    #expect(sizes.allSatisfy { $0 == 80 })
  }

  @Test(arguments: [false, true]) func speechComesBack(isQuick: Bool) throws {
    let speech = try TestFiles.speech()
    let encoder = try OpusEncoder()
    encoder.setQuick(isQuick)
    let decoder = try OpusDecoder()
    var heard = [Int16]()
    for frame in speech { heard += try decoder.decode(encoder.encode(frame)) }
    let sent = speech.flatMap { $0 }
    // The encoder's look-ahead delays the output by 312 samples.
    let correlation = (300...324).map { Self.correlation(sent, heard, delay: $0) }.max() ?? 0
    #expect(correlation > 0.95)
  }

  /// At the rate of long packets, whatever is encoded: all frames of a packet must have the same
  /// mode.
  @Test func packetsAreJoinedAndTakenApart() throws {
    let encoder = try OpusEncoder(
      kilobitsPerSecond: 16, expectedLossPercent: 0, isWideband: true)
    var random = PRNG(seed: 5)
    let noise = (0..<90).map { _ in
      (0..<960).map { _ in Int16(truncatingIfNeeded: random.next()) }
    }
    let silence = [[Int16]](repeating: [Int16](repeating: 0, count: 960), count: 90)
    let tone = (0..<90).map { frame in
      (0..<960).map { Int16(20_000 * sin(Double(frame * 960 + $0) / 7)) }
    }
    let speech = try TestFiles.speech()
    let recording = speech + silence + noise + speech + tone + silence + speech
    var frames = try recording.map { try encoder.encode($0) }
    #expect(frames.allSatisfy { $0.count == 40 })
    while frames.count >= 3 {
      let three = Array(frames.suffix(3))
      let packet = try OpusPacket.joined(three, bytes: 120)
      try #require(packet.count == 120)
      let unpadded = three.flatMap { OpusPacket.frames(of: $0, limit: 1) }
      try #require(OpusPacket.frames(of: packet, limit: 3) == unpadded)
      try #require(OpusPacket.frames(of: packet, limit: 2) == [packet])
      frames.removeLast(3)
    }
  }

  @Test func framesThatDifferAreNotJoined() throws {
    let speech = try TestFiles.speech()
    let wide = try OpusEncoder(isWideband: true)
    let full = try OpusEncoder()
    _ = try speech.prefix(20).map { (try wide.encode($0), try full.encode($0)) }
    let packets = [try wide.encode(speech[20]), try full.encode(speech[20])]
    #expect(throws: CodecError.self) { try OpusPacket.joined(packets, bytes: 200) }
    #expect(throws: CodecError.self) { try OpusPacket.joined([], bytes: 200) }
    #expect(throws: CodecError.self) { try OpusPacket.joined(packets, bytes: 20) }
  }

  @Test func whatCannotBeTakenApartIsLeftAsItIs() throws {
    var random = PRNG(seed: 6)
    for _ in 0..<20_000 {
      let packet = random.bytes(random.below(300))
      let frames = OpusPacket.frames(of: packet, limit: 3)
      guard frames != [packet] else { continue }
      #expect((1...3).contains(frames.count) && packet[0] & 3 != 0)
      #expect(frames.allSatisfy { $0[0] == packet[0] & ~3 && $0.count <= packet.count })
    }
    // One frame of 60 ms, and three of 2.5 ms.
    for packet: [UInt8] in [[0x58, 1, 2, 3], [0x83, 3, 1, 2, 3], []] {
      #expect(OpusPacket.frames(of: packet, limit: 3) == [packet])
    }
  }

  @Test func inBandRedundancyBeatsConcealment() throws {
    let encoder = try OpusEncoder()
    let packets = try TestFiles.speech().map { try encoder.encode($0) }
    let whole = try OpusDecoder()
    let recovering = try OpusDecoder()
    let concealing = try OpusDecoder()
    var error = (recovered: 0.0, concealed: 0.0)
    for (index, packet) in packets.enumerated() {
      let truth = try whole.decode(packet)
      guard index % 5 == 3, index + 1 < packets.count else {
        _ = try recovering.decode(packet)
        _ = try concealing.decode(packet)
        continue
      }
      let recovered = try recovering.recover(from: packets[index + 1])
      let concealed = concealing.conceal()
      #expect(recovered.count == 960 && concealed.count == 960)
      error.recovered += Quality.energy(zip(truth, recovered).map { $0 &- $1 })
      error.concealed += Quality.energy(zip(truth, concealed).map { $0 &- $1 })
    }
    #expect(error.recovered < 0.5 * error.concealed)
  }

  @Test func concealmentFadesToSilence() throws {
    let encoder = try OpusEncoder()
    let decoder = try OpusDecoder()
    for frame in try TestFiles.speech().prefix(60) { _ = try decoder.decode(encoder.encode(frame)) }
    var last = [Int16]()
    for _ in 0..<50 { last = decoder.conceal() }
    #expect(AudioLevel.dBov(last) > 55)
  }

  @Test func junkIsAnErrorAndNoCrash() throws {
    let seed: UInt64 = 4
    var random = PRNG(seed: seed)
    let decoder = try OpusDecoder()
    #expect(throws: CodecError.self) { try decoder.decode([]) }
    for _ in 0..<2000 {
      let packet = random.bytes(1 + random.below(1500))
      if let pcm = try? decoder.decode(packet) { #expect(pcm.count == 960, "seed \(seed)") }
      if let pcm = try? decoder.recover(from: packet) { #expect(pcm.count == 960) }
      #expect(decoder.conceal().count == 960)
    }
  }

  @Test func framesOfAnotherLengthAreRefused() throws {
    let encoder = try OpusEncoder()
    #expect(throws: CodecError.self) { try encoder.encode([0, 0, 0]) }
    // A code 3 packet (RFC 6716 section 3.2.5) of two frames has 40 ms; the jitter buffer expects
    // 20.
    let packet = try encoder.encode([Int16](repeating: 0, count: 960))
    let double = [packet[0] & 0xFC | 1] + packet.dropFirst() + packet.dropFirst()
    let decoder = try OpusDecoder()
    #expect(throws: CodecError.self) { try decoder.decode(double) }
  }

  private static func correlation(_ a: [Int16], _ b: [Int16], delay: Int) -> Double {
    var (ab, aa, bb) = (0.0, 0.0, 0.0)
    for index in 0..<(a.count - delay) {
      let (x, y) = (Double(a[index]), Double(b[index + delay]))
      ab += x * y
      aa += x * x
      bb += y * y
    }
    return ab / (aa * bb).squareRoot()
  }
}
