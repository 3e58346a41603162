import CSpeexDSP

/// Changes the sample rate of a mono stream, by speexdsp.
///
/// Not thread-safe: use it from one thread at a time.
public final class Resampler {
  private let state: OpaquePointer
  private var inputRate: Int
  private let outputRate: Int

  public static let rates = 1000...384_000

  /// Quality 0 to 10; 5 keeps speech clean and costs microseconds per frame.
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
    // Otherwise every stream begins with half a filter length of silence.
    speex_resampler_skip_zeros(state)
  }

  deinit { speex_resampler_destroy(state) }

  /// Resamples a piece; the pieces' outputs joined are the stream. Keeps a filter's worth back.
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

  /// Follows a clock that runs a little fast or slow, without a click.
  public func setInputRate(_ rate: Int) {
    guard rate != inputRate, Self.rates.contains(rate),
      speex_resampler_set_rate(state, UInt32(rate), UInt32(outputRate)) == 0
    else { return }
    inputRate = rate
  }
}
