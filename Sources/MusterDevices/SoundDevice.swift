import CALSA
import CMusterShims
import MusterBase
import MusterCodecs
import MusterSystem

/// An open ALSA PCM, configured as close to 48 kHz mono 16-bit as the device supports.
final class SoundDevice {
  enum Direction { case capture, playback }

  let name: String
  let direction: Direction
  let pcm: OpaquePointer
  private(set) var samplesPerSecond = 0
  private(set) var channels = 0
  private(set) var isWide = false
  private(set) var periodSamples = 0
  private(set) var bufferSamples = 0

  /// The requested period: half a frame, so that a frame waits for the device for at most 10 ms.
  private static let period = Duration.milliseconds(10)
  /// The requested buffer size, headroom for late wake-ups; the writer keeps the buffer mostly
  /// empty, because its content adds latency.
  private static let buffer = Duration.milliseconds(100)

  init(name: String, direction: Direction) throws(DeviceError) {
    self.name = name
    self.direction = direction
    muster_silence_alsa()
    var opened: OpaquePointer?
    let stream = direction == .capture ? SND_PCM_STREAM_CAPTURE : SND_PCM_STREAM_PLAYBACK
    // Non-blocking, because a blocking read or write could not be cancelled; `snd_pcm_wait` waits
    // with a timeout instead.
    let error = snd_pcm_open(&opened, name, stream, SND_PCM_NONBLOCK)
    guard error == 0, let opened else {
      throw Self.failure(name, direction, error)
    }
    pcm = opened
    do { try configure() } catch {
      // All properties are set, so `deinit` closes the device.
      throw error
    }
  }

  deinit { snd_pcm_close(pcm) }

  /// The duration of `count` samples at the device's rate.
  func duration(ofSamples count: Int) -> Duration {
    .nanoseconds(Int64(count) * 1_000_000_000 / Int64(samplesPerSecond))
  }

  /// Restarts the device after an overrun, underrun or suspend; throws if the device has been
  /// removed.
  func recover(from error: Int) throws(DeviceError) {
    let result = snd_pcm_recover(pcm, Int32(error), 1)
    guard result == 0 else { throw Self.failure(name, direction, result) }
    if direction == .capture { snd_pcm_start(pcm) }
  }

  func failure(_ error: Int) -> DeviceError { Self.failure(name, direction, Int32(error)) }

  private func configure() throws(DeviceError) {
    var parameters: OpaquePointer?
    guard snd_pcm_hw_params_malloc(&parameters) == 0, let parameters else {
      throw failure(Int(-ENOMEM))
    }
    defer { snd_pcm_hw_params_free(parameters) }
    try check(snd_pcm_hw_params_any(pcm, parameters))
    try check(
      snd_pcm_hw_params_set_access(pcm, parameters, SND_PCM_ACCESS_RW_INTERLEAVED))
    if snd_pcm_hw_params_set_format(pcm, parameters, SND_PCM_FORMAT_S16_LE) < 0 {
      try check(snd_pcm_hw_params_set_format(pcm, parameters, SND_PCM_FORMAT_S32_LE))
      isWide = true
    }
    var channelCount: UInt32 = 1
    try check(snd_pcm_hw_params_set_channels_near(pcm, parameters, &channelCount))
    var rate = UInt32(AudioFormat.samplesPerSecond)
    try check(snd_pcm_hw_params_set_rate_near(pcm, parameters, &rate, nil))
    var period = UInt(Self.period.inSeconds * Double(rate))
    try check(snd_pcm_hw_params_set_period_size_near(pcm, parameters, &period, nil))
    var buffer = max(UInt(Self.buffer.inSeconds * Double(rate)), 2 * period)
    try check(snd_pcm_hw_params_set_buffer_size_near(pcm, parameters, &buffer))
    try check(snd_pcm_hw_params(pcm, parameters))
    guard (1...64).contains(channelCount), Resampler.rates.contains(Int(rate)), period > 0,
      buffer >= period
    else { throw failure(Int(-EINVAL)) }
    channels = Int(channelCount)
    samplesPerSecond = Int(rate)
    periodSamples = Int(period)
    bufferSamples = Int(buffer)
    try configureSoftware()
  }

  private func configureSoftware() throws(DeviceError) {
    var parameters: OpaquePointer?
    guard snd_pcm_sw_params_malloc(&parameters) == 0, let parameters else {
      throw failure(Int(-ENOMEM))
    }
    defer { snd_pcm_sw_params_free(parameters) }
    try check(snd_pcm_sw_params_current(pcm, parameters))
    // Playback starts with two frames queued; with one, the first late wake-up would cause an
    // underrun.
    let threshold =
      direction == .capture ? 1 : min(bufferSamples, samplesPerSecond / 25)
    try check(snd_pcm_sw_params_set_start_threshold(pcm, parameters, UInt(threshold)))
    try check(snd_pcm_sw_params_set_avail_min(pcm, parameters, UInt(periodSamples)))
    try check(snd_pcm_sw_params(pcm, parameters))
    try check(snd_pcm_prepare(pcm))
    if direction == .capture { try check(snd_pcm_start(pcm)) }
  }

  private func check(_ result: Int32) throws(DeviceError) {
    if result < 0 { throw Self.failure(name, direction, result) }
  }

  private static func failure(
    _ name: String, _ direction: Direction, _ error: Int32
  ) -> DeviceError {
    let isCapture = direction == .capture
    let kind = isCapture ? "microphone" : "speaker"
    let other = isCapture ? "use --audio tone" : "use --speaker none"
    switch -error {
    case ENOENT, ENXIO:
      return DeviceError(
        what: "no \(kind) '\(name)'", hint: "see 'muster devices', or \(other)")
    case ENODEV, EBADFD, EIO, EPIPE:
      return DeviceError(
        what: "the \(kind) '\(name)' is gone", hint: "plug it in again, or \(other)")
    case EBUSY:
      return DeviceError(
        what: "the \(kind) '\(name)' is in use", hint: "close the program that uses it",
        isBusy: true)
    case EACCES, EPERM:
      return DeviceError(
        what: "the \(kind) '\(name)' may not be used",
        hint: "add yourself to the group 'audio' and log in again")
    default:
      let text = snd_strerror(error).map { String(cString: $0) } ?? "error \(error)"
      return DeviceError(
        what: "the \(kind) '\(name)' failed (\(text))", hint: "see 'muster devices', or \(other)")
    }
  }
}
