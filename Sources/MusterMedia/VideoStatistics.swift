import MusterBase

/// What became of one member's video.
public struct VideoStatistics: Equatable, Sendable {
  public var packets: UInt64 = 0
  public var bytes: UInt64 = 0
  /// Lost on the network, whether or not a retransmission replaced them.
  public var packetsLost: Int64 = 0
  public var packetsRecovered: UInt64 = 0
  /// Duplicates, and packets too late to be of use.
  public var packetsLate: UInt64 = 0
  /// Malformed, of no known layer, or of a source that was not expected.
  public var packetsIgnored: UInt64 = 0
  public var frames: UInt64 = 0
  public var keyframes: UInt64 = 0
  public var framesLost: UInt64 = 0
  /// Gaps of more than 200 ms between pictures, and how long they were together.
  public var freezes: UInt64 = 0
  public var frozen: Duration = .zero
  public var packetsRequested: UInt64 = 0
  public var keyframesRequested: UInt64 = 0
  /// Of the newest picture; nil before the first.
  public var size: VideoSize?
  public var layer: Int?

  public init() {}
}
