import CMusterShims
import COpus

/// The audio format between devices, codecs and mixer: 16-bit mono PCM.
public enum AudioFormat {
  /// The sample rate in Hz, the full-band rate of Opus.
  public static let samplesPerSecond = 48_000
  /// The number of samples in a frame of 20 ms.
  public static let samplesPerFrame = 960
  /// The duration of a frame.
  public static let frameDuration = Duration.milliseconds(20)
}

/// An Opus encoder (RFC 6716) for speech at constant bitrate, so that packet sizes reveal nothing
/// about the content (RFC 6562).
///
/// Not thread-safe: use it from one thread at a time.
public final class OpusEncoder {
  private let state: OpaquePointer
  /// The maximum size in bytes of a packet with one frame: the TOC byte and 1275 bytes (RFC 6716
  /// sections 3.1 and 3.4).
  private static let packetBytes = 1276
  /// The complexities for good and for quick encoding: 5 takes half the time of 9, and three times
  /// that of 1 (measured on speech).
  private static let complexity = (good: 5, quick: 1)

  private var isQuick = false

  /// `kilobitsPerSecond` is clamped to 6...510. Wideband, up to 8 kHz, makes all packets SILK's, so
  /// that they can be joined. Throws if libopus cannot allocate its state.
  public init(
    kilobitsPerSecond: Int = 32, expectedLossPercent: Int = 10, isWideband: Bool = false
  ) throws(CodecError) {
    var error: Int32 = 0
    // The high-pass filter and emphasis of OPUS_APPLICATION_VOIP would change the signal (measured
    // on speech at equal bitrate: correlation with the original 0.85 with VOIP, 0.97 with AUDIO).
    guard
      let state = opus_encoder_create(
        Int32(AudioFormat.samplesPerSecond), 1, OPUS_APPLICATION_AUDIO, &error)
    else { throw CodecError("libopus cannot make an encoder: \(Self.text(error))") }
    self.state = state
    set(OPUS_SET_BITRATE_REQUEST, min(max(kilobitsPerSecond, 6), 510) * 1000)
    // Variable packet sizes leak speech through encryption (RFC 6562).
    set(OPUS_SET_VBR_REQUEST, 0)
    set(OPUS_SET_DTX_REQUEST, 0)
    set(OPUS_SET_INBAND_FEC_REQUEST, 1)
    // In-band FEC exists in the SILK modes only, so the encoder must not classify speech as music.
    set(OPUS_SET_SIGNAL_REQUEST, Int(OPUS_SIGNAL_VOICE))
    if isWideband { set(OPUS_SET_BANDWIDTH_REQUEST, Int(OPUS_BANDWIDTH_WIDEBAND)) }
    set(OPUS_SET_COMPLEXITY_REQUEST, Self.complexity.good)
    setExpectedLoss(percent: expectedLossPercent)
  }

  deinit { opus_encoder_destroy(state) }

  /// Encodes 960 samples of 48 kHz mono; throws for any other count.
  public func encode(_ pcm: [Int16]) throws(CodecError) -> [UInt8] {
    guard pcm.count == AudioFormat.samplesPerFrame else {
      throw CodecError("an audio frame of \(pcm.count) samples")
    }
    var result: Int32 = 0
    let packet = [UInt8](unsafeUninitializedCapacity: Self.packetBytes) { buffer, count in
      guard let out = buffer.baseAddress else { return }
      result = opus_encode(state, pcm, Int32(pcm.count), out, Int32(buffer.count))
      count = Int(max(result, 0))
    }
    guard result > 0 else { throw CodecError("Opus encoding failed: \(Self.text(result))") }
    return packet
  }

  /// Sets the expected packet loss in percent, at most 20: a higher value moves bits from a frame
  /// to the FEC copy of the previous frame.
  public func setExpectedLoss(percent: Int) {
    // libwebrtc's upper bound: above 20 % the FEC copy costs more quality than it saves.
    set(OPUS_SET_PACKET_LOSS_PERC_REQUEST, min(max(percent, 0), 20))
  }

  /// Lets the encoder work fast rather than well from the next frame on, or well again.
  public func setQuick(_ isQuick: Bool) {
    guard isQuick != self.isQuick else { return }
    self.isQuick = isQuick
    set(OPUS_SET_COMPLEXITY_REQUEST, isQuick ? Self.complexity.quick : Self.complexity.good)
  }

  private func set(_ request: Int32, _ value: Int) {
    _ = muster_opus_encoder_set(UnsafeMutableRawPointer(state), request, Int32(value))
  }

  static func text(_ error: Int32) -> String {
    opus_strerror(error).map { String(cString: $0) } ?? "error \(error)"
  }
}

/// A decoder for the Opus packets of one sender, with loss concealment.
///
/// Every call returns the next 960 samples, so exactly one call is due per 20 ms: `decode` with the
/// packet; if that is lost, `recover` with the next packet; otherwise `conceal`. Not thread-safe.
public final class OpusDecoder {
  private let state: OpaquePointer

  /// Creates a decoder; throws if libopus cannot allocate its state.
  public init() throws(CodecError) {
    var error: Int32 = 0
    guard let state = opus_decoder_create(Int32(AudioFormat.samplesPerSecond), 1, &error) else {
      throw CodecError("libopus cannot make a decoder: \(OpusEncoder.text(error))")
    }
    self.state = state
  }

  deinit { opus_decoder_destroy(state) }

  /// Decodes the next 960 samples; throws for packets that are malformed or longer than 20 ms.
  public func decode(_ packet: [UInt8]) throws(CodecError) -> [Int16] {
    guard !packet.isEmpty else { throw CodecError("an empty Opus packet") }
    return try samples(of: packet, redundancy: false)
  }

  /// Decodes the lost frame before `next` from the in-band FEC copy in `next`; without such a copy,
  /// libopus conceals the loss.
  public func recover(from next: [UInt8]) throws(CodecError) -> [Int16] {
    guard !next.isEmpty else { return conceal() }
    return try samples(of: next, redundancy: true)
  }

  /// Conceals a lost packet by extrapolation, which fades out over successive calls.
  public func conceal() -> [Int16] {
    (try? samples(of: nil, redundancy: false))
      ?? [Int16](repeating: 0, count: AudioFormat.samplesPerFrame)
  }

  private func samples(of packet: [UInt8]?, redundancy: Bool) throws(CodecError) -> [Int16] {
    // A packet may contain up to 120 ms; the 20 ms buffer makes libopus reject longer packets.
    let wanted = AudioFormat.samplesPerFrame
    var result: Int32 = 0
    let pcm = [Int16](unsafeUninitializedCapacity: wanted) { buffer, count in
      guard let out = buffer.baseAddress else { return }
      if let packet {
        result = opus_decode(
          state, packet, Int32(packet.count), out, Int32(wanted), redundancy ? 1 : 0)
      } else {
        result = opus_decode(state, nil, 0, out, Int32(wanted), 0)
      }
      count = Int(max(result, 0))
    }
    guard result == Int32(wanted) else {
      throw CodecError(
        result < 0
          ? "Opus decoding failed: \(OpusEncoder.text(result))"
          : "an Opus packet of \(result) samples, not \(wanted)")
    }
    return pcm
  }
}
