import MusterBase

/// The queueing delay of a path: by how much its packets take longer than the fastest one.
struct QueueDelay: Sendable {
  /// The fastest packet is one of the last one or two periods: longer ones would show how far the
  /// clocks of both ends drift apart.
  static let period = Duration.seconds(30)

  private var periodEnd: Instant?
  /// The least difference of the two clocks in this period and in the one before.
  private var least: Duration?
  private var leastBefore: Duration?
  /// The least of both; nil before the first report.
  private(set) var base: Duration?
  /// The mean over the packets of the last report; nil before the first.
  private(set) var mean: Duration?
  /// The least of the packets of the last report.
  private(set) var shortest = Duration.zero

  /// Takes the packets of a report.
  mutating func update(_ arrivals: [PacketResult], at now: Instant) {
    let delays = arrivals.compactMap { packet in packet.arrivedAt.map { $0 - packet.sentAt } }
    guard let shortest = delays.min() else { return }
    if let periodEnd, now >= periodEnd { (leastBefore, least) = (least, nil) }
    if periodEnd.map({ now >= $0 }) ?? true { periodEnd = now + Self.period }
    least = min(least ?? shortest, shortest)
    let base = min(leastBefore ?? shortest, least ?? shortest)
    let sum = delays.reduce(0) { $0 + ($1 - base).inSeconds }
    self.base = base
    mean = .seconds(sum / Double(delays.count))
    self.shortest = shortest - base
  }
}
