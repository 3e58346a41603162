import MusterBase

/// A short burst at a rate above the estimate, which shows whether the path can carry that much.
public struct ProbeCluster: Equatable, Sendable {
  /// Counts the clusters of a path.
  public typealias ID = Int

  /// The least number of packets.
  public static let packets = 5
  /// The least duration.
  public static let duration = Duration.milliseconds(15)

  public let id: ID
  /// The rate at which its packets are sent.
  public let rate: DataRate

  /// Describes a cluster.
  public init(id: ID, rate: DataRate) {
    self.id = id
    self.rate = rate
  }

  /// The least number of bytes of IP packets.
  public var bytes: Double { rate.bytes(in: Self.duration) }
}
