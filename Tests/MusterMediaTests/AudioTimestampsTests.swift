import MusterBase
import MusterMedia
import Testing

struct AudioTimestampsTests {
  private func packets(
    _ count: Int, ppm: Double, jitter: Double, seed: UInt64
  ) -> (timestamps: [UInt32], clock: AudioTimestamps, end: Instant) {
    var prng = PRNG(seed: seed)
    var clock = AudioTimestamps()
    var timestamps: [UInt32] = []
    var end = Instant.zero
    for index in 0..<count {
      let ideal = 1e9 + Double(index) * 20e6 * (1 + ppm / 1e6)
      end = Instant(nanoseconds: Int64(ideal + jitter * (2 * prng.unit() - 1) * 1e6))
      timestamps.append(clock.next(capturedAt: end))
    }
    return (timestamps, clock, end)
  }

  @Test(arguments: [0.0, 200, -200])
  func timestampsCountSamplesWhateverTheClocksDo(ppm: Double) {
    let (timestamps, _, _) = packets(20_000, ppm: ppm, jitter: 8, seed: 7)
    for (earlier, later) in zip(timestamps, timestamps.dropFirst()) {
      #expect(later &- earlier == 960)
    }
  }

  @Test func reportsFollowADriftingSoundCard() {
    // After 400 s at 200 ppm the clocks are 80 ms apart; the report must still be within 2 ms.
    let (timestamps, clock, end) = packets(20_000, ppm: 200, jitter: 0, seed: 1)
    let error = Int32(bitPattern: clock.timestamp(at: end) &- timestamps[19_999])
    #expect(abs(error) <= 96)
  }

  @Test func aPauseIsAJump() {
    var clock = AudioTimestamps()
    let first = clock.next(capturedAt: Instant(nanoseconds: 1_000_000_000))
    let second = clock.next(capturedAt: Instant(nanoseconds: 3_000_000_000))
    #expect(second &- first == 96_000)
  }
}
