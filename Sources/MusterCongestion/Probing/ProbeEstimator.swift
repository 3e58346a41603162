import MusterBase

/// Measures the rate at which the packets of a probe cluster arrive.
struct ProbeEstimator: Sendable {
  /// The shares of a cluster's packets and bytes that must have arrived.
  static let share = 0.8
  /// A cluster that arrives this many times faster than it was sent was held up on the way.
  static let mostSpeedUp = 2.0
  /// The path is full if a cluster arrives slower than this share of its sending rate; it is then
  /// used up to `use`.
  static let full = 0.9
  static let use = 0.95
  /// A cluster is sent and received within this time.
  static let longest = Duration.seconds(1)
  private static let limit = 8

  private struct Cluster {
    let probe: ProbeCluster
    var packets = 0
    var bytes = 0
    var firstArrivalBytes = 0
    var lastSentBytes = 0
    var sent: ClosedRange<Instant>?
    var arrived: ClosedRange<Instant>?

    mutating func add(_ result: PacketResult, arrivedAt: Instant) {
      packets += 1
      bytes += result.bytes
      let sentBefore = sent ?? result.sentAt...result.sentAt
      if result.sentAt >= sentBefore.upperBound { lastSentBytes = result.bytes }
      sent = min(sentBefore.lowerBound, result.sentAt)...max(sentBefore.upperBound, result.sentAt)
      let arrivedBefore = arrived ?? arrivedAt...arrivedAt
      if arrived == nil || arrivedAt < arrivedBefore.lowerBound { firstArrivalBytes = result.bytes }
      arrived = min(arrivedBefore.lowerBound, arrivedAt)...max(arrivedBefore.upperBound, arrivedAt)
    }

    var rate: DataRate? {
      guard Double(packets) >= ProbeEstimator.share * Double(ProbeCluster.packets),
        Double(bytes) >= ProbeEstimator.share * probe.bytes, let sent, let arrived
      else { return nil }
      let sending = sent.upperBound - sent.lowerBound
      let arriving = arrived.upperBound - arrived.lowerBound
      let valid = Duration.nanoseconds(1)...ProbeEstimator.longest
      guard valid.contains(sending), valid.contains(arriving) else { return nil }
      // n packets span n - 1 intervals.
      let sendRate = DataRate(bytes: Double(bytes - lastSentBytes), over: sending)
      let arrivalRate = DataRate(bytes: Double(bytes - firstArrivalBytes), over: arriving)
      guard arrivalRate <= sendRate * ProbeEstimator.mostSpeedUp else { return nil }
      guard arrivalRate < sendRate * ProbeEstimator.full else { return min(sendRate, arrivalRate) }
      return arrivalRate * ProbeEstimator.use
    }
  }

  /// In the order of sending.
  private var clusters: [Cluster] = []

  /// Expects the packets of a cluster.
  mutating func began(_ probe: ProbeCluster) {
    if clusters.count == Self.limit { clusters.removeFirst() }
    clusters.append(Cluster(probe: probe))
  }

  /// Adds a packet in the order of arrival. Returns the rate that the path has carried, once enough
  /// packets of the cluster have arrived, and again with each further one.
  mutating func add(_ result: PacketResult) -> DataRate? {
    guard let id = result.probe, let arrivedAt = result.arrivedAt,
      let index = clusters.firstIndex(where: { $0.probe.id == id })
    else { return nil }
    clusters[index].add(result, arrivedAt: arrivedAt)
    return clusters[index].rate
  }
}
