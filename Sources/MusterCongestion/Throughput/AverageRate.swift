import MusterBase

/// The rate of packets over about the last second.
public struct AverageRate: Sendable {
  /// The time after which a packet counts no more.
  private static let window = Duration.seconds(1)

  private var rate: DataRate
  private var updatedAt: Instant?

  /// Creates an average that is `rate` until packets show another.
  public init(_ rate: DataRate) { self.rate = rate }

  /// Counts a packet.
  public mutating func add(_ bytes: Int, at now: Instant) {
    rate = value(at: now) + DataRate(bytes: Double(bytes), over: Self.window)
    updatedAt = now
  }

  /// The average; it falls while there are no packets.
  public func value(at now: Instant) -> DataRate {
    guard let updatedAt else { return rate }
    return rate * max(1 - (now - updatedAt) / Self.window, 0)
  }
}
