import MusterBase

/// The rates of a path whose queue does not empty: packets then arrive as fast as the bottleneck
/// lets them through, or at the share of its rate that this sender gets.
///
/// It takes a tenth of a second to see that a path has become narrower, whereas the acknowledged
/// rate, an average of a second, shows the former capacity for as long.
package struct BusyPath: Sendable {
  /// The queueing delay from which on the queue has not emptied in between: more than jitter.
  static let queue = Duration.milliseconds(50)
  /// No window is longer, or has more packets.
  static let longest = Duration.milliseconds(250)
  static let most = 256
  /// The time and the packets without which there are no rates.
  static let required = (time: Duration.milliseconds(50), packets: 4)

  package struct Rates: Equatable, Sendable {
    /// The rate at which packets are sent, those that are lost included.
    package var sending: DataRate
    /// The rate at which they arrive.
    package var arriving: DataRate
  }

  /// The time at which the first packet was sent of those that have waited, one and all, until the
  /// last report; nil if the queue is empty.
  package private(set) var busySince: Instant?
  /// The last rates of this busy period; nil without any.
  package private(set) var rates: Rates?

  /// Those of the busy period that were sent since `from`, in the order of sending.
  private var packets: [PacketResult] = []
  private var from: Instant?

  package init() {}

  /// Takes the packets of a report in the order of sending, and the least transit time.
  package mutating func add(_ results: [PacketResult], base: Duration) {
    for result in results {
      if let arrivedAt = result.arrivedAt, arrivedAt - result.sentAt - base < Self.queue {
        (busySince, rates, from) = (nil, nil, nil)
        packets.removeAll(keepingCapacity: true)
        continue
      }
      // A loss alone shows no queue.
      guard busySince != nil || result.arrivedAt != nil else { continue }
      busySince = busySince ?? result.sentAt
      if from.map({ result.sentAt >= $0 }) ?? true { packets.append(result) }
    }
    guard !packets.isEmpty else { return }
    dropOld()
    rates = measured ?? rates
  }

  /// Measures only what is sent from now on, since this sender has changed its rate.
  package mutating func restart(at now: Instant) {
    packets.removeAll(keepingCapacity: true)
    (rates, from) = (nil, now)
  }

  private mutating func dropOld() {
    if packets.count > Self.most { packets.removeFirst(packets.count - Self.most) }
    guard let end = packets.lazy.compactMap(\.arrivedAt).last else { return }
    let first = packets.firstIndex { $0.arrivedAt.map { end - $0 <= Self.longest } ?? false }
    packets.removeFirst(first ?? 0)
  }

  private var measured: Rates? {
    let arrived = packets.filter { $0.arrivedAt != nil }
    guard arrived.count >= Self.required.packets, let first = arrived.first,
      let last = arrived.last, let begin = first.arrivedAt, let end = last.arrivedAt,
      end - begin >= Self.required.time, last.sentAt > first.sentAt
    else { return nil }
    // n packets span n - 1 intervals.
    let bytes = arrived.dropFirst().reduce(0) { $0 + $1.bytes }
    let sent = packets.filter { first.sentAt < $0.sentAt && $0.sentAt <= last.sentAt }
      .reduce(0) { $0 + $1.bytes }
    return Rates(
      sending: DataRate(bytes: Double(sent), over: last.sentAt - first.sentAt),
      arriving: DataRate(bytes: Double(bytes), over: end - begin))
  }
}
