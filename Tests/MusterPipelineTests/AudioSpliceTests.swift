import Glibc
import MusterBase
import MusterCodecs
import MusterDevices
import MusterMedia
import MusterPipeline
import Testing

/// The audio of one source after another.
struct AudioSpliceTests {
  private static let amplitude = 8000.0

  /// A frame of a sine that begins at this phase.
  private func frame(_ hertz: Double, phase: Double, at time: Instant) -> CapturedAudio {
    let pcm = (0..<AudioFormat.samplesPerFrame).map { index -> Int16 in
      let angle: Double = phase + 2 * .pi * hertz * Double(index) / 48_000
      return Int16(Self.amplitude * sin(angle))
    }
    return CapturedAudio(pcm: pcm, capturedAt: time)
  }

  /// The largest step between two samples.
  private func step(_ pcm: [Int16]) -> Int {
    zip(pcm, pcm.dropFirst()).map { abs(Int($0) - Int($1)) }.max() ?? 0
  }

  /// At a seam samples differ by no more than within the two sources, and by what fades.
  @Test(arguments: [UInt64(3), 4711]) func nothingClicksBetweenTwoSources(seed: UInt64) {
    var random = PRNG(seed: seed)
    for _ in 0..<100 {
      var splice = AudioSplice()
      let (low, high) = (200 + 300 * random.unit(), 500 + 500 * random.unit())
      let first = frame(low, phase: 6 * random.unit(), at: .zero + .seconds(1))
      #expect(splice.take(first) == first)
      splice.begin()
      // Up to 10 ms early, and up to 30 ms late.
      let gap = Duration.milliseconds(20 - 10 + Int64(random.below(40)))
      let second = frame(high, phase: 6 * random.unit(), at: first.capturedAt + gap)
      let joined = splice.take(second) ?? first
      let inSources = Self.amplitude * 2 * .pi * high / 48_000
      let fading = 2 * Self.amplitude / 240
      #expect(
        Double(step(Array(first.pcm.suffix(2) + joined.pcm))) <= inSources + fading + 2,
        "seed \(seed)")
      #expect(joined.pcm.dropFirst(240) == second.pcm.dropFirst(240))
      #expect(joined.capturedAt == second.capturedAt)
      let third = frame(high, phase: 0, at: second.capturedAt + .milliseconds(20))
      #expect(splice.take(third) == third)
    }
  }

  @Test func afterAPauseTheNewSourceFadesIn() {
    var splice = AudioSplice()
    _ = splice.take(frame(300, phase: 1, at: .zero))
    splice.begin()
    let joined = splice.take(frame(300, phase: 1.5, at: .zero + .milliseconds(200)))
    #expect(joined.map { abs(Int($0.pcm[0])) < 100 } ?? false)
  }

  /// A device that was opened beside the former one has captured before it is used.
  @Test func aTimeThatWasSentIsNotSentAgain() throws {
    var splice = AudioSplice()
    _ = splice.take(frame(300, phase: 0, at: .zero + .milliseconds(100)))
    splice.begin()
    for early in [60, 80, 109] {
      #expect(splice.take(frame(500, phase: 0, at: .zero + .milliseconds(Int64(early)))) == nil)
    }
    #expect(splice.take(frame(500, phase: 0, at: .zero + .milliseconds(110))) != nil)
  }
}
