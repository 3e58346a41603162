import CMusterShims
import COpus

/// The one audio format between devices, codecs and mixer.
public enum AudioFormat {
  public static let samplesPerSecond = 48_000
  /// 20 ms, mono.
  public static let samplesPerFrame = 960
  public static let frameDuration = Duration.milliseconds(20)
}

/// Opus for speech: constant bitrate, so that packet sizes say nothing about what is spoken.
///
/// Not thread-safe: use it from one thread at a time.
public final class OpusEncoder {
  private let state: OpaquePointer
  /// 20 ms at 510 kbit/s, the most Opus knows.
  private static let packetBytes = 1276

  public init(kilobitsPerSecond: Int = 32, expectedLossPercent: Int = 10) throws(CodecError) {
    var error: Int32 = 0
    // Not OPUS_APPLICATION_VOIP: its high-pass and emphasis change the sound (measured on speech,
    // the correlation with the original is 0.85 with it and 0.97 without, at equal bitrate).
    guard
      let state = opus_encoder_create(
        Int32(AudioFormat.samplesPerSecond), 1, OPUS_APPLICATION_AUDIO, &error)
    else { throw CodecError("libopus cannot make an encoder: \(Self.text(error))") }
    self.state = state
    set(OPUS_SET_BITRATE_REQUEST, min(max(kilobitsPerSecond, 6), 510) * 1000)
    // Variable sizes leak speech through encryption (c-toxcore changed for this reason).
    set(OPUS_SET_VBR_REQUEST, 0)
    set(OPUS_SET_DTX_REQUEST, 0)
    set(OPUS_SET_INBAND_FEC_REQUEST, 1)
    // In-band FEC exists in the speech modes only, so the encoder must not guess music.
    set(OPUS_SET_SIGNAL_REQUEST, Int(OPUS_SIGNAL_VOICE))
    // Measured: 9 costs twice the time of 5 at the same bitrate.
    set(OPUS_SET_COMPLEXITY_REQUEST, 5)
    setExpectedLoss(percent: expectedLossPercent)
  }

  deinit { opus_encoder_destroy(state) }

  /// Encodes 960 samples of 48 kHz mono.
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

  /// More expected loss moves bits from the frame itself to the copy of the one before.
  public func setExpectedLoss(percent: Int) {
    // libwebrtc's cap: beyond 20 % the copy costs more than it saves.
    set(OPUS_SET_PACKET_LOSS_PERC_REQUEST, min(max(percent, 0), 20))
  }

  private func set(_ request: Int32, _ value: Int) {
    _ = muster_opus_encoder_set(UnsafeMutableRawPointer(state), request, Int32(value))
  }

  static func text(_ error: Int32) -> String {
    opus_strerror(error).map { String(cString: $0) } ?? "error \(error)"
  }
}

/// Decodes one speaker's packets, and makes up for those that are missing.
///
/// Every call gives the next 960 samples in order, so it must be called once per 20 ms: with the
/// packet, else with the one after it, else with nothing. Not thread-safe.
public final class OpusDecoder {
  private let state: OpaquePointer

  public init() throws(CodecError) {
    var error: Int32 = 0
    guard let state = opus_decoder_create(Int32(AudioFormat.samplesPerSecond), 1, &error) else {
      throw CodecError("libopus cannot make a decoder: \(OpusEncoder.text(error))")
    }
    self.state = state
  }

  deinit { opus_decoder_destroy(state) }

  public func decode(_ packet: [UInt8]) throws(CodecError) -> [Int16] {
    guard !packet.isEmpty else { throw CodecError("an empty Opus packet") }
    return try samples(of: packet, redundancy: false)
  }

  /// The frame before `next`, from the copy that `next` carries (in-band FEC); when it carries
  /// none, libopus conceals.
  public func recover(from next: [UInt8]) throws(CodecError) -> [Int16] {
    guard !next.isEmpty else { return conceal() }
    return try samples(of: next, redundancy: true)
  }

  /// A plausible continuation, fading when asked again and again.
  public func conceal() -> [Int16] {
    (try? samples(of: nil, redundancy: false))
      ?? [Int16](repeating: 0, count: AudioFormat.samplesPerFrame)
  }

  private func samples(of packet: [UInt8]?, redundancy: Bool) throws(CodecError) -> [Int16] {
    // A packet may claim up to 120 ms; a buffer of one frame makes libopus refuse the longer ones.
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
