import MusterBase
import MusterWire

/// Maps a stream's RTP timestamps to its sender's media clock (boot time plus a random offset), by
/// the latest sender report.
public struct SenderClock: Equatable, Sendable {
  private var reference: (rtpTime: UInt32, instant: Instant)?

  /// Creates a clock without a reference, which the first sender report sets.
  public init() {}

  /// Whether a sender report has arrived.
  public var isKnown: Bool { reference != nil }

  /// Makes a sender report the new reference.
  public mutating func update(_ report: SenderReport) {
    reference = (report.rtpTime, RTPTime.instant(ofNTP: report.ntpTime))
  }

  /// The time at which the sender captured the frame with this timestamp; nil before the first
  /// report.
  public func captureTime(of timestamp: UInt32, clockRate: Int) -> Instant? {
    guard let reference else { return nil }
    return reference.instant
      + RTPTime.distance(from: reference.rtpTime, to: timestamp, clockRate: clockRate)
  }

  public static func == (a: SenderClock, b: SenderClock) -> Bool {
    a.reference?.rtpTime == b.reference?.rtpTime && a.reference?.instant == b.reference?.instant
  }
}
