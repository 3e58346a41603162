import CALSA
import MusterBase
import MusterCodecs
import MusterSystem

/// An ALSA capture device as an audio source.
final class MicrophoneSource: AudioSource, @unchecked Sendable {
  let isLive = true

  private let device: SoundDevice
  private let cancellation: Cancellation
  private let resampler: Resampler?
  private var ready = [Int16]()
  private var clock = CaptureClock()
  private var runaway = RunawayGuard()
  private let scratch: UnsafeMutableRawBufferPointer

  /// The number of waits without data, 2 s in total, after which the device is considered to have
  /// failed.
  private static let patience = 20
  private static let waitMilliseconds: Int32 = 100

  init(device name: String, cancellation: Cancellation) throws(DeviceError) {
    let device = try SoundDevice(name: name, direction: .capture)
    self.device = device
    self.cancellation = cancellation
    resampler =
      device.samplesPerSecond == AudioFormat.samplesPerSecond
      ? nil : try? Resampler(from: device.samplesPerSecond)
    scratch = .allocate(
      byteCount: device.periodSamples * device.channels * (device.isWide ? 4 : 2), alignment: 16)
  }

  deinit { scratch.deallocate() }

  func next() throws(DeviceError) -> CapturedAudio? {
    while ready.count < AudioFormat.samplesPerFrame {
      guard try readPeriod() else { return nil }
    }
    let pcm = Array(ready.prefix(AudioFormat.samplesPerFrame))
    ready.removeFirst(pcm.count)
    if let pause = runaway.delay(at: BootClock.now) {
      guard cancellation.sleep(until: pause) else { return nil }
    }
    return CapturedAudio(pcm: pcm, capturedAt: clock.frame(at: BootClock.now, age: age(pcm.count)))
  }

  func cancel() { cancellation.cancel() }

  /// The age of the first of `count` samples just taken from `ready`: the duration of those
  /// samples, of the rest of `ready` and of the device's buffer.
  private func age(_ count: Int) -> Duration {
    var delay = 0
    let queued = snd_pcm_delay(device.pcm, &delay) == 0 ? max(delay, 0) : 0
    return device.duration(ofSamples: queued)
      + .nanoseconds(
        Int64(count + ready.count) * 1_000_000_000 / Int64(AudioFormat.samplesPerSecond))
  }

  /// Reads up to one ALSA period; false if cancelled.
  private func readPeriod() throws(DeviceError) -> Bool {
    for _ in 0..<Self.patience {
      if cancellation.isCancelled { return false }
      let count = snd_pcm_readi(
        device.pcm, scratch.baseAddress, UInt(device.periodSamples))
      if count > 0 {
        take(count)
        return true
      }
      if count < 0, count != -Int(EAGAIN) {
        try device.recover(from: count)
        clock.reset()
      }
      let waited = snd_pcm_wait(device.pcm, Self.waitMilliseconds)
      if waited < 0 {
        try device.recover(from: Int(waited))
        clock.reset()
      }
    }
    throw DeviceError(
      what: "the microphone '\(device.name)' gives no audio",
      hint: "see 'muster devices', or use --audio tone")
  }

  /// Mixes the channels down and converts to 16 bits at 48 kHz.
  private func take(_ count: Int) {
    let channels = device.channels
    var mono = [Int16](repeating: 0, count: count)
    for index in 0..<count {
      var sum: Int64 = 0
      for channel in 0..<channels {
        let position = index * channels + channel
        sum +=
          device.isWide
          ? Int64(scratch.load(fromByteOffset: position * 4, as: Int32.self) >> 16)
          : Int64(scratch.load(fromByteOffset: position * 2, as: Int16.self))
      }
      mono[index] = Int16(truncatingIfNeeded: sum / Int64(channels))
    }
    ready += resampler?.process(mono) ?? mono
  }
}

/// Smooths capture times, which contain the scheduling jitter of the reading thread.
struct CaptureClock {
  private var expected: Instant?

  /// The deviation above which a discontinuity is assumed, such as an overrun or a suspend.
  static let tolerance = Duration.milliseconds(40)

  mutating func frame(at now: Instant, age: Duration) -> Instant {
    let measured = now.advanced(by: .zero - age)
    var time = measured
    if let expected {
      let error = measured - expected
      let bounded = error < Self.tolerance && error > .zero - Self.tolerance
      // Correcting a twentieth of the error averages over 20 frames and still follows clock drift.
      if bounded { time = expected.advanced(by: error / 20) }
    }
    expected = time + AudioFormat.frameDuration
    return time
  }

  mutating func reset() { expected = nil }
}
