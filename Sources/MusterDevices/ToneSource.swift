import MusterBase
import MusterCodecs
import MusterSystem

/// A 440 Hz tone that is louder for 100 ms at every full second of boot time, in sync with the test
/// pattern's flash.
final class ToneSource: AudioSource, @unchecked Sendable {
  let isLive = false

  private let cancellation: Cancellation
  private var schedule: AudioSchedule
  private var gain = ToneSource.quiet

  private static let frequency = 440
  private static let quiet = 0.08
  private static let loud = 0.5
  /// The gain change per sample: from quiet to loud in 96 samples (2 ms), which avoids clicks.
  private static let slope = (loud - quiet) / 96

  init(cancellation: Cancellation) {
    self.cancellation = cancellation
    schedule = AudioSchedule(start: BootClock.now)
  }

  func next() throws(DeviceError) -> CapturedAudio? {
    let start = schedule.take(at: BootClock.now, frame: AudioFormat.frameDuration)
    // As with a real device, a frame is available once its last sample has been captured.
    guard cancellation.sleep(until: start + AudioFormat.frameDuration) else { return nil }
    return CapturedAudio(pcm: samples(from: start), capturedAt: start)
  }

  func cancel() { cancellation.cancel() }

  private func samples(from start: Instant) -> [Int16] {
    let rate = Int64(AudioFormat.samplesPerSecond)
    return (0..<AudioFormat.samplesPerFrame).map { offset in
      let time = start.nanoseconds + Int64(offset) * 1_000_000_000 / rate
      let target =
        TestPattern.flashes(at: Instant(nanoseconds: time)) ? Self.loud : Self.quiet
      gain += min(max(target - gain, -Self.slope), Self.slope)
      // The phase depends only on the time within the second, which has 440 whole periods.
      let phase = Double(time % 1_000_000_000) / 1e9 * Double(Self.frequency)
      return Int16(32767 * gain * sin(2 * .pi * phase))
    }
  }
}
