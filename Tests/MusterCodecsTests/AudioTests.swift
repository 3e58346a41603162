import Glibc
import MusterBase
import MusterCodecs
import Testing

@Suite struct AudioTests {
  private func sine(_ frequency: Double, rate: Int, count: Int, amplitude: Double) -> [Int16] {
    (0..<count).map {
      Int16(amplitude * sin(2 * .pi * frequency * Double($0) / Double(rate)))
    }
  }

  @Test func levelsAreThoseOfTheStandard() {
    #expect(AudioLevel.dBov([Int16](repeating: 0, count: 960)) == 127)
    #expect(AudioLevel.dBov([Int16]()) == 127)
    #expect(AudioLevel.dBov([Int16](repeating: .min, count: 960)) == 0)
    #expect(AudioLevel.dBov([Int16](repeating: 1, count: 960)) == 90)
    // A sine of full scale lies 3 dB below a square wave.
    #expect(AudioLevel.dBov(sine(400, rate: 48_000, count: 960, amplitude: 32767)) == 3)
    #expect(AudioLevel.dBov(sine(400, rate: 48_000, count: 960, amplitude: 3277)) == 23)
  }

  @Test func oneSpeakerPassesUnchanged() {
    let loud: [Int16] = [.max, .min, 0, 30_000]
    #expect(AudioMixer().mix([loud]) == loud)
    #expect(AudioMixer().mix([]) == [])
  }

  @Test func speakersAddUp() {
    #expect(AudioMixer().mix([[100, -200, 3], [10, 20], [1]]) == [111, -180, 3])
  }

  @Test func loudSumsBendAndNeverWrap() {
    let mixer = AudioMixer()
    var previous = Int16.min
    for level in stride(from: -32_768, through: 32_767, by: 257) {
      let sample = Int16(level)
      let mixed = mixer.mix([[sample], [sample], [sample]])[0]
      #expect(mixed >= previous)
      previous = mixed
    }
    let extremes = mixer.mix([[Int16]](repeating: [.max, .min], count: 100))
    #expect(extremes[0] > 32_000 && extremes[1] < -32_000)
  }

  @Test(arguments: [8000, 16_000, 44_100, 96_000])
  func resamplingKeepsPitchAndLevel(rate: Int) throws {
    let input = sine(440, rate: rate, count: rate, amplitude: 10_000)
    let resampler = try Resampler(from: rate)
    var output = [Int16]()
    for start in stride(from: 0, to: input.count, by: 441) {
      output += resampler.process(Array(input[start..<min(start + 441, input.count)]))
    }
    #expect((47_000...48_000).contains(output.count))
    let wanted = sine(440, rate: 48_000, count: output.count, amplitude: 10_000)
    let error = Quality.energy(zip(output, wanted).dropFirst(500).dropLast(500).map { $0 &- $1 })
    #expect(error < 0.003 * Quality.energy(wanted))
  }

  @Test func absurdRatesAreRefused() {
    #expect(throws: CodecError.self) { try Resampler(from: 0) }
    #expect(throws: CodecError.self) { try Resampler(from: 10_000_000) }
  }

  @Test func echoIsCancelled() throws {
    let speech = try TestFiles.speech()
    let canceller = try EchoCanceller()
    let played = (speech + speech + speech).flatMap { $0 }
    // An echo of half the amplitude after 40 ms.
    let echo = [Int16](repeating: 0, count: 1920) + played.map { $0 / 2 }
    var before = 0.0
    var after = 0.0
    for start in stride(from: 0, to: played.count - 959, by: 960) {
      let captured = Array(echo[start..<(start + 960)])
      let output = canceller.process(
        captured: captured, played: Array(played[start..<(start + 960)]))
      #expect(output.count == 960)
      guard start > played.count * 2 / 3 else { continue }
      before += Quality.energy(captured)
      after += Quality.energy(output)
    }
    // At least 10 dB; 39 dB and more were measured on such signals.
    #expect(after < 0.1 * before)
  }

  @Test func nearSpeechPassesTheCanceller() throws {
    let speech = try TestFiles.speech()
    let canceller = try EchoCanceller(options: .init(denoise: false))
    var before = 0.0
    var after = 0.0
    for frame in speech {
      before += Quality.energy(frame)
      after += Quality.energy(canceller.process(captured: frame, played: nil))
    }
    #expect(after > 0.5 * before)
    #expect(canceller.process(captured: [1, 2, 3], played: nil) == [1, 2, 3])
  }
}
