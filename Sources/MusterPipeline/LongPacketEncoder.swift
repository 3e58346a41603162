import MusterBase
import MusterCodecs

/// The encoder of long packets of audio, at half the bitrate of the others.
package struct LongPacketEncoder {
  private static let kilobitsPerSecond = 16
  /// The size of a packet at that bitrate.
  private static let packetBytes = 120
  /// The time between two frames from which on the source has paused in between.
  private static let pause = AudioFormat.frameDuration * 2

  private let encoder: OpusEncoder
  /// The frames of the next packet, each an Opus packet.
  private var frames: [[UInt8]] = []
  private var level = UInt8.max
  private var lastCapture: Instant?

  /// Throws if libopus cannot allocate its state. There is no in-band FEC, which replaces one frame
  /// of a packet, while the packets have several.
  package init() throws(CodecError) {
    encoder = try OpusEncoder(
      kilobitsPerSecond: Self.kilobitsPerSecond, expectedLossPercent: 0, isWideband: true)
  }

  /// Lets the encoder work fast rather than well from the next frame on, or well again.
  package func setQuick(_ isQuick: Bool) { encoder.setQuick(isQuick) }

  /// Encodes a frame of 960 samples; returns the packet that ends with it, if one does. The frames
  /// before a pause of the source are not joined with those after it.
  package mutating func encode(
    _ pcm: [Int16], level: UInt8, capturedAt: Instant
  ) throws(CodecError) -> EncodedAudio.LongPacket? {
    if let lastCapture, capturedAt - lastCapture > Self.pause { startPacket() }
    lastCapture = capturedAt
    frames.append(try encoder.encode(pcm))
    self.level = min(self.level, level)
    guard frames.count == EncodedAudio.framesPerLongPacket else { return nil }
    defer { startPacket() }
    // Should the encoder change its mode within a packet after all, receivers conceal the packet.
    let packet = try? OpusPacket.joined(frames, bytes: Self.packetBytes)
    return packet.map { EncodedAudio.LongPacket(data: $0, level: self.level) }
  }

  private mutating func startPacket() {
    frames.removeAll(keepingCapacity: true)
    level = .max
  }
}
