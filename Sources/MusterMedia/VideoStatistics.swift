import MusterBase

/// Counters of one member's video packets and frames, by outcome.
public struct VideoStatistics: Equatable, Sendable {
  /// Packets received with the current SSRC of a layer, including duplicates and malformed packets.
  public var packets: UInt64 = 0
  /// RTP payload bytes of the packets counted in `packets`.
  public var bytes: UInt64 = 0
  /// Packets lost on the network, whether or not a retransmission replaced them.
  public var packetsLost: Int64 = 0
  /// Packets that arrived after they had been requested by NACK.
  public var packetsRetransmitted: UInt64 = 0
  /// Duplicates, and packets too late to be used.
  public var packetsLate: UInt64 = 0
  /// Malformed packets, and packets of an unknown layer or an unexpected SSRC.
  public var packetsIgnored: UInt64 = 0
  /// Complete frames delivered to be shown, including keyframes.
  public var frames: UInt64 = 0
  /// Keyframes delivered.
  public var keyframes: UInt64 = 0
  /// Frames that were not delivered since packets were lost, from gaps in the PictureID.
  public var framesLost: UInt64 = 0
  /// Intervals between shown frames that are freezes (`FreezeMeter`), except pauses of the source;
  /// also the interval since the last frame. Stills do not count.
  public var freezes: UInt64 = 0
  /// The total duration of the intervals counted in `freezes`.
  public var totalFreezesDuration: Duration = .zero
  /// Sequence numbers requested by NACK.
  public var packetsRequested: UInt64 = 0
  /// Keyframes requested by PLI.
  public var keyframesRequested: UInt64 = 0
  /// The size of the latest frame; nil before the first frame.
  public var size: VideoSize?
  /// The simulcast layer of the latest frame, 0 for the smallest; nil before the first frame.
  public var layer: Int?

  /// Creates counters that are all zero, with unknown size and layer.
  public init() {}
}

extension VideoStatistics: CounterSet {
  public var counted: [(name: String, value: UInt64)] {
    [
      ("packets", packets),
      ("bytes", bytes),
      ("packetsLost", UInt64(clamping: packetsLost)),
      ("packetsRetransmitted", packetsRetransmitted),
      ("packetsLate", packetsLate),
      ("packetsIgnored", packetsIgnored),
      ("frames", frames),
      ("keyframes", keyframes),
      ("framesLost", framesLost),
      ("freezes", freezes),
      ("packetsRequested", packetsRequested),
      ("keyframesRequested", keyframesRequested),
    ]
  }
}
