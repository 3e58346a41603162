import COpus

/// Opus packets of several frames (RFC 6716 section 3.2).
public enum OpusPacket {
  /// The number of samples at 48 kHz of a frame that can be played.
  private static let frameSamples = Int32(AudioFormat.samplesPerFrame)

  /// Joins packets into one of this size: frames of SILK are shorter than the bitrate allows, and
  /// the size must not reveal their contents (RFC 6562). Throws if the frames differ in mode,
  /// bandwidth or duration, which may not be joined, or do not fit.
  public static func joined(
    _ packets: [[UInt8]], bytes size: Int
  ) throws(CodecError) -> [UInt8] {
    guard let repacketizer = opus_repacketizer_create() else {
      throw CodecError("libopus cannot make a repacketizer")
    }
    defer { opus_repacketizer_destroy(repacketizer) }
    // The repacketizer refers to the packets until the joined one is made.
    let bytes = packets.flatMap { $0 }
    var result: Int32 = 0
    let joined = [UInt8](unsafeUninitializedCapacity: size) { out, count in
      bytes.withUnsafeBufferPointer { bytes in
        guard var next = bytes.baseAddress, let start = out.baseAddress else { return }
        for packet in packets where result == OPUS_OK {
          result = opus_repacketizer_cat(repacketizer, next, Int32(packet.count))
          next += packet.count
        }
        guard result == OPUS_OK else { return }
        result = opus_repacketizer_out(repacketizer, start, Int32(size))
        guard result > 0 else { return }
        result = opus_packet_pad(start, result, Int32(size))
        count = size
      }
    }
    guard result == OPUS_OK, joined.count == size else {
      throw CodecError("Opus packets that cannot be joined: \(OpusEncoder.text(result))")
    }
    return joined
  }

  /// The packets of one frame of 20 ms that a packet consists of, up to `limit`. A packet that does
  /// not consist of such frames, or of more, is returned as it is; it does not decode.
  public static func frames(of packet: [UInt8], limit: Int) -> [[UInt8]] {
    guard packet.count > 1, packet[0] & 3 != 0,
      opus_packet_get_samples_per_frame(packet, Int32(AudioFormat.samplesPerSecond)) == frameSamples
    else { return [packet] }
    var code: UInt8 = 0
    // RFC 6716 allows 48 frames.
    var starts = [UnsafePointer<UInt8>?](repeating: nil, count: 48)
    var sizes = [Int16](repeating: 0, count: starts.count)
    let frames = packet.withUnsafeBufferPointer { bytes in
      guard let start = bytes.baseAddress else { return [[UInt8]]() }
      let count = opus_packet_parse(
        start, Int32(bytes.count), &code, &starts, &sizes, nil)
      return zip(starts, sizes).prefix(Int(max(count, 0))).map { start, size in
        [code & ~3] + UnsafeBufferPointer(start: start, count: Int(size))
      }
    }
    return (1...limit).contains(frames.count) ? frames : [packet]
  }
}
