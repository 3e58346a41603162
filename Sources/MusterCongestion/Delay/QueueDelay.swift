import MusterBase

/// The queueing delay of a path: by how much its packets take longer than the fastest one.
struct QueueDelay: Sendable {
  /// The fastest packet is one of the last one or two periods: longer ones would show how far the
  /// clocks of both ends drift apart.
  static let period = Duration.seconds(30)

  /// The least difference of the two clocks.
  private var least = PeriodMinimum<Duration>(period: period)
  /// The difference of the fastest packet; nil before the first report.
  var base: Duration? { least.value }
  /// The mean over the packets of the last report; nil before the first.
  private(set) var mean: Duration?
  /// The least of the packets of the last report.
  private(set) var shortest = Duration.zero

  /// Takes the packets of a report.
  mutating func update(_ arrivals: [PacketResult], at now: Instant) {
    let delays = arrivals.compactMap { packet in packet.arrivedAt.map { $0 - packet.sentAt } }
    guard let shortest = delays.min() else { return }
    least.add(shortest, at: now)
    let base = least.value ?? shortest
    let sum = delays.reduce(0) { $0 + ($1 - base).inSeconds }
    mean = .seconds(sum / Double(delays.count))
    self.shortest = shortest - base
  }
}
