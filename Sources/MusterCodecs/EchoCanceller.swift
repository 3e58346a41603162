import CSpeexDSP

/// An acoustic echo canceller and noise suppressor for a microphone, by speexdsp.
///
/// Frames have 960 samples. Each captured frame needs the frame that was played at that time, or at
/// most `tail` earlier. Capture and playback must share a clock: in measurements, 30 ppm of drift
/// reduced the echo attenuation from 39 to 11 dB. Not thread-safe.
public final class EchoCanceller {
  /// The options for processing in addition to echo cancellation.
  public struct Options: Equatable, Sendable {
    /// Whether to suppress stationary noise; also required for suppression of the residual echo.
    public var denoise = true
    /// Whether to use automatic gain control.
    public var gainControl = false

    public init(denoise: Bool = true, gainControl: Bool = false) {
      self.denoise = denoise
      self.gainControl = gainControl
    }
  }

  /// The longest echo delay that is cancelled, including device buffers. A tail of 200 ms takes 132
  /// us of CPU time per frame.
  public static let tail = Duration.milliseconds(200)

  private let echo: OpaquePointer
  private let preprocess: OpaquePointer
  private static let silence = [Int16](repeating: 0, count: AudioFormat.samplesPerFrame)

  /// Creates a canceller; throws if speexdsp cannot allocate its state.
  public init(options: Options = Options()) throws(CodecError) {
    let tailSamples = AudioFormat.samplesPerSecond / 5
    guard
      let echo = speex_echo_state_init(
        Int32(AudioFormat.samplesPerFrame), Int32(tailSamples))
    else { throw CodecError("speexdsp cannot make an echo canceller") }
    guard
      let preprocess = speex_preprocess_state_init(
        Int32(AudioFormat.samplesPerFrame), Int32(AudioFormat.samplesPerSecond))
    else {
      speex_echo_state_destroy(echo)
      throw CodecError("speexdsp cannot make a preprocessor")
    }
    self.echo = echo
    self.preprocess = preprocess
    var rate = Int32(AudioFormat.samplesPerSecond)
    speex_echo_ctl(echo, SPEEX_ECHO_SET_SAMPLING_RATE, &rate)
    speex_preprocess_ctl(
      preprocess, SPEEX_PREPROCESS_SET_ECHO_STATE, UnsafeMutableRawPointer(echo))
    // speexdsp suppresses the residual echo only if denoising is on.
    set(SPEEX_PREPROCESS_SET_DENOISE, options.denoise ? 1 : 0)
    set(SPEEX_PREPROCESS_SET_AGC, options.gainControl ? 1 : 0)
  }

  deinit {
    speex_preprocess_state_destroy(preprocess)
    speex_echo_state_destroy(echo)
  }

  /// The captured frame without the echo of `played`; nil stands for silence.
  ///
  /// Frames of any length other than 960 samples are returned unchanged.
  public func process(captured: [Int16], played: [Int16]?) -> [Int16] {
    let samples = AudioFormat.samplesPerFrame
    let played = played ?? Self.silence
    guard captured.count == samples, played.count == samples else { return captured }
    return [Int16](unsafeUninitializedCapacity: samples) { buffer, count in
      guard let out = buffer.baseAddress else { return }
      speex_echo_cancellation(echo, captured, played, out)
      speex_preprocess_run(preprocess, out)
      count = samples
    }
  }

  /// Discards the adapted echo path; required after a change of device.
  public func reset() { speex_echo_state_reset(echo) }

  private func set(_ request: Int32, _ value: Int32) {
    var value = value
    speex_preprocess_ctl(preprocess, request, &value)
  }
}
