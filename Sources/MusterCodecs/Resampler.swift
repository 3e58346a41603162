import CSpeexDSP

/// A sample rate converter for one mono stream, by speexdsp.
///
/// Not thread-safe: use it from one thread at a time.
public final class Resampler {
  private let state: OpaquePointer
  private var inputRate: Int
  private let outputRate: Int

  /// The supported sample rates in Hz.
  public static let rates = 1000...384_000

  /// `quality` is 0 to 10; 5 is transparent for speech and takes microseconds per frame. Throws for
  /// rates outside `rates`.
  public init(from inputRate: Int, to outputRate: Int = 48_000, quality: Int = 5)
    throws(CodecError)
  {
    guard Self.rates.contains(inputRate), Self.rates.contains(outputRate) else {
      throw CodecError("cannot resample from \(inputRate) to \(outputRate) Hz")
    }
    var error: Int32 = 0
    guard
      let state = speex_resampler_init(
        1, UInt32(inputRate), UInt32(outputRate), Int32(min(max(quality, 0), 10)), &error)
    else { throw CodecError("cannot resample from \(inputRate) to \(outputRate) Hz") }
    self.state = state
    self.inputRate = inputRate
    self.outputRate = outputRate
    // Skips the initial silence of half the filter's length.
    speex_resampler_skip_zeros(state)
  }

  deinit { speex_resampler_destroy(state) }

  /// Resamples a chunk of any length; the outputs of successive calls form one stream, which lags
  /// behind the input by half the filter's length.
  public func process(_ pcm: [Int16]) -> [Int16] {
    guard !pcm.isEmpty else { return [] }
    let estimate = pcm.count * outputRate / inputRate + 64
    var consumed = UInt32(pcm.count)
    var produced = UInt32(estimate)
    return [Int16](unsafeUninitializedCapacity: estimate) { buffer, count in
      guard let out = buffer.baseAddress else { return }
      let result = speex_resampler_process_int(state, 0, pcm, &consumed, out, &produced)
      count = result == 0 ? Int(produced) : 0
    }
  }

  /// Adjusts the input rate without a discontinuity, to follow the drift of a device's clock.
  public func setInputRate(_ rate: Int) {
    guard rate != inputRate, Self.rates.contains(rate),
      speex_resampler_set_rate(state, UInt32(rate), UInt32(outputRate)) == 0
    else { return }
    inputRate = rate
  }
}
