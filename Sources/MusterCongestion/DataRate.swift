import MusterBase

/// A number of bits per unit of time. Rates of congestion control are counted in IP packets.
public struct DataRate: Comparable, Sendable {
  /// The rate in kbit/s.
  public var kbps: Double

  public init(kbps: Double) { self.kbps = kbps }

  /// The rate of this many bytes over a time, which must be positive.
  public init(bytes: Double, over time: Duration) {
    kbps = bytes * 8 / 1_000 / time.inSeconds
  }

  public static let zero = DataRate(kbps: 0)

  /// The number of bytes that the rate amounts to in a time.
  public func bytes(in time: Duration) -> Double { kbps * 1_000 / 8 * time.inSeconds }

  public static func < (a: DataRate, b: DataRate) -> Bool { a.kbps < b.kbps }
  public static func + (a: DataRate, b: DataRate) -> DataRate { DataRate(kbps: a.kbps + b.kbps) }
  public static func - (a: DataRate, b: DataRate) -> DataRate { DataRate(kbps: a.kbps - b.kbps) }
  public static func * (rate: DataRate, factor: Double) -> DataRate {
    DataRate(kbps: rate.kbps * factor)
  }
}
