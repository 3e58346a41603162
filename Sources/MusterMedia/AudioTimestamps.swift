import MusterBase

/// The RTP timestamps of outgoing audio, which advance by 960 samples per frame.
///
/// A capture device's sample clock drifts against the boot clock, and capture times jitter.
/// Receivers need timestamps that count samples (RFC 3550 section 5.1), so this type tracks the
/// offset of the two clocks for sender reports, and lets timestamps jump only over a pause.
public struct AudioTimestamps: Equatable, Sendable {
  /// The number of samples in a frame of 20 ms.
  public static let samplesPerFrame: UInt32 = 960
  /// The deviation from the smoothed offset that counts as a pause, in samples: 40 ms.
  private static let pause: Int32 = 1920

  private var last: UInt32?
  /// The clock of the capture times minus the sample clock, in samples, smoothed over about 16
  /// frames.
  private var offset = 0.0

  /// Creates the timestamps of a new stream.
  public init() {}

  /// The timestamp of a frame whose first sample was captured at this time.
  public mutating func next(capturedAt: Instant) -> UInt32 {
    let clock = RTPTime.timestamp(of: capturedAt, clockRate: RTPTime.audioClockRate)
    guard let last else {
      self.last = clock
      return clock
    }
    let expected = last &+ Self.samplesPerFrame
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

  /// The sample clock's value at this time, for sender reports.
  public func timestamp(at now: Instant) -> UInt32 {
    let clock = RTPTime.timestamp(of: now, clockRate: RTPTime.audioClockRate)
    return clock &- UInt32(bitPattern: Int32(max(min(offset, 0x3FFF_FFFF), -0x3FFF_FFFF)))
  }
}
