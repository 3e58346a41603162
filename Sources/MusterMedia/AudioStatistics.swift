/// What became of one speaker's audio packets.
public struct AudioStatistics: Equatable, Sendable {
  public var received: UInt64 = 0
  /// Not there when their turn came, or ever.
  public var lost: UInt64 = 0
  /// Frames made up by the decoder.
  public var concealed: UInt64 = 0
  /// Lost packets made good by the redundancy in the one after.
  public var recovered: UInt64 = 0
  /// Arrived after their turn, or twice.
  public var late: UInt64 = 0
  /// Thrown away unheard, because the buffer was too far behind or started afresh.
  public var discarded: UInt64 = 0
  /// Frames left out of the waiting time and put into it, to keep the delay where it should be.
  public var shortened: UInt64 = 0
  public var lengthened: UInt64 = 0

  public init() {}
}
