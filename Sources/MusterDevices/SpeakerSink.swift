import CALSA
import MusterBase
import MusterCodecs
import MusterSystem
import Synchronization

/// An ALSA playback device whose buffer is filled only as far as needed.
///
/// The device's buffer holds 100 ms, but the fill level is kept at `target`, because queued audio
/// adds latency. Each underrun raises the target permanently, because a machine that schedules
/// threads late needs more headroom.
final class SpeakerSink: AudioSink, @unchecked Sendable {
  let isLive = true

  private let device: SoundDevice
  private let cancellation: Cancellation
  private let resampler: Resampler?
  private var runaway = RunawayGuard()
  private var target: Duration
  /// The last `delay` in nanoseconds, for other threads, because only the writing thread calls
  /// ALSA.
  private let lastDelay = Atomic<Int64>(0)

  /// The minimum fill level: one frame of 20 ms in playback, and one frame until the next wake-up.
  static let leastTarget = Duration.milliseconds(40)
  private static let step = Duration.milliseconds(10)
  private static let waitMilliseconds: Int32 = 100
  private static let patience = 20

  init(device name: String, cancellation: Cancellation) throws(DeviceError) {
    let device = try SoundDevice(name: name, direction: .playback)
    self.device = device
    self.cancellation = cancellation
    target = max(Self.leastTarget, device.duration(ofSamples: 2 * device.periodSamples))
    resampler =
      device.samplesPerSecond == AudioFormat.samplesPerSecond
      ? nil
      : try? Resampler(
        from: AudioFormat.samplesPerSecond, to: device.samplesPerSecond)
  }

  var delay: Duration { .nanoseconds(lastDelay.load(ordering: .relaxed)) }

  func write(_ pcm: [Int16]) throws(DeviceError) {
    if cancellation.isCancelled { return }
    let samples = resampler?.process(pcm) ?? pcm
    try deliver(interleaved(samples), count: samples.count)
    lastDelay.store(queued().wholeNanoseconds, ordering: .relaxed)
    let now = BootClock.now
    // Waits until the next frame fits within the target; `runaway` throttles devices without a
    // clock.
    let surplus = queued() + AudioFormat.frameDuration - target
    let due = surplus > .zero ? now + surplus : now
    let pause = runaway.delay(at: now).map { max($0, due) } ?? due
    if pause > now { _ = cancellation.sleep(until: pause) }
  }

  func close() { cancellation.cancel() }

  private func queued() -> Duration {
    var samples = 0
    guard snd_pcm_delay(device.pcm, &samples) == 0 else { return .zero }
    return device.duration(ofSamples: max(samples, 0))
  }

  private func interleaved(_ samples: [Int16]) -> [UInt8] {
    let width = device.isWide ? 4 : 2
    return [UInt8](unsafeUninitializedCapacity: samples.count * device.channels * width) {
      buffer, count in
      let raw = UnsafeMutableRawBufferPointer(buffer)
      for (index, sample) in samples.enumerated() {
        for channel in 0..<device.channels {
          let offset = (index * device.channels + channel) * width
          if device.isWide {
            raw.storeBytes(of: Int32(sample) << 16, toByteOffset: offset, as: Int32.self)
          } else {
            raw.storeBytes(of: sample, toByteOffset: offset, as: Int16.self)
          }
        }
      }
      count = buffer.count
    }
  }

  private func deliver(_ bytes: [UInt8], count: Int) throws(DeviceError) {
    let frameBytes = device.channels * (device.isWide ? 4 : 2)
    var done = 0
    var waits = 0
    while done < count, !cancellation.isCancelled {
      let written = bytes.withUnsafeBytes { buffer in
        snd_pcm_writei(
          device.pcm, buffer.baseAddress?.advanced(by: done * frameBytes), UInt(count - done))
      }
      if written > 0 {
        done += written
        continue
      }
      if written < 0, written != -Int(EAGAIN) {
        try recover(from: written)
        continue
      }
      waits += 1
      guard waits < Self.patience else {
        throw DeviceError(
          what: "the speaker '\(device.name)' takes no audio",
          hint: "see 'muster devices', or use --speaker none")
      }
      let waited = snd_pcm_wait(device.pcm, Self.waitMilliseconds)
      if waited < 0 { try recover(from: Int(waited)) }
    }
  }

  private func recover(from error: Int) throws(DeviceError) {
    try device.recover(from: error)
    if error == -Int(EPIPE) {
      let most = device.duration(ofSamples: device.bufferSamples)
      target = min(target + Self.step, max(most, Self.leastTarget))
    }
  }
}
