import MusterBase

/// Spreads the packets of all paths over time, so that they do not queue at the uplink that the
/// paths share.
///
/// Each path has a pacer of its own, but the frames of a camera leave for all receivers at once.
/// Packets that do not wait, such as audio, are counted, and the video waits for them.
public struct UplinkPacer: Sendable {
  /// What may queue at the uplink: as much as the pacer of a path lets leave at once.
  private static let queue = Duration.milliseconds(5)
  /// The longest wait for what has left.
  private static let longestDebt = Duration.milliseconds(500)

  /// The rate of the uplink; nil if it is no limit.
  public var rate: DataRate?

  /// The time at which the uplink has sent all that it was given.
  private var idleAt: Instant?

  /// Creates the pacer of an uplink that is no limit.
  public init() {}

  /// Counts a packet that is sent.
  public mutating func sent(bytes: Int, at now: Instant) {
    guard let rate else { return idleAt = nil }
    let time = Duration.seconds(Double(bytes) / max(rate.bytes(in: .seconds(1)), 1))
    idleAt = min(max(idleAt ?? now, now) + time, now + Self.longestDebt)
  }

  /// The time from which the next packet may leave; nil if it may at any time.
  public var opensAt: Instant? { idleAt.map { $0 + (.zero - Self.queue) } }

  /// Whether a packet may leave now.
  public func isOpen(at now: Instant) -> Bool { opensAt.map { $0 <= now } ?? true }
}
