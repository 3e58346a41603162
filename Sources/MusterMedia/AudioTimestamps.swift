import MusterBase

/// The RTP timestamps of one's own sound: 960 further with every packet, whatever the clocks do.
///
/// A sound card's clock is not the boot clock, and capture times jitter. Receivers need timestamps
/// that count samples without a break (RFC 3550 5.1), so the difference of the two clocks is kept
/// here and told by sender reports; only a real pause makes the timestamps jump.
public struct AudioTimestamps: Equatable, Sendable {
  /// Samples in a packet of 20 ms.
  public static let samplesPerPacket: UInt32 = 960
  /// A deviation from the running difference beyond this is a pause: 40 ms.
  private static let pause: Int32 = 1920

  private var last: UInt32?
  /// Boot clock less sample clock, in samples, smoothed over about 16 packets.
  private var offset = 0.0

  public init() {}

  /// The timestamp of the packet whose first sample was captured then.
  public mutating func next(capturedAt: Instant) -> UInt32 {
    let clock = RTPTime.timestamp(of: capturedAt, clockRate: RTPTime.audioClockRate)
    guard let last else {
      self.last = clock
      return clock
    }
    let expected = last &+ Self.samplesPerPacket
    let difference = Int32(bitPattern: clock &- expected)
    let deviation = Double(difference) - offset
    guard abs(deviation) <= Double(Self.pause) else {
      let jump = Int32(max(min(deviation, 0x3FFF_FFFF), -0x3FFF_FFFF))
      self.last = expected &+ UInt32(bitPattern: jump)
      return expected &+ UInt32(bitPattern: jump)
    }
    offset += deviation / 16
    self.last = expected
    return expected
  }

  /// What the sample clock shows at a moment of the boot clock, for sender reports.
  public func timestamp(at now: Instant) -> UInt32 {
    let clock = RTPTime.timestamp(of: now, clockRate: RTPTime.audioClockRate)
    return clock &- UInt32(bitPattern: Int32(max(min(offset, 0x3FFF_FFFF), -0x3FFF_FFFF)))
  }
}
