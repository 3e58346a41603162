import MusterBase

/// The rate at which packets arrive, over the last second or more: what the path has carried
/// ("robust throughput estimator" in WebRTC).
package struct AcknowledgedRate: Sendable {
  /// The window has at least this many packets and this duration without gaps, as far as there are
  /// as many.
  static let packets = 20
  static let duration = Duration.seconds(1)
  /// No window is longer, or has more packets.
  static let longest = Duration.seconds(5)
  static let most = 500
  /// The packets and the time without which there is no estimate: a burst, such as a keyframe, has
  /// no rate.
  static let required = (packets: 10, time: Duration.milliseconds(500))

  private struct Arrival {
    let bytes: Int
    let sentAt: Instant
    let arrivedAt: Instant
    /// Whether the packets before it were never reported.
    let isAfterGap: Bool
  }

  /// In the order of arrival.
  private var window = RingBuffer<Arrival>(capacity: most)
  /// The time in the window that no report covers.
  private var gaps = Duration.zero

  package init() {}

  /// Adds a packet, in the order of arrival; `isAfterGap` says that the reports on packets before
  /// it were lost.
  package mutating func add(
    bytes: Int, sentAt: Instant, arrivedAt: Instant, isAfterGap: Bool = false
  ) {
    // A receiver whose clock jumps begins anew.
    if let last = window.last, arrivedAt < last.arrivedAt {
      window.removeAll()
      gaps = .zero
    }
    if isAfterGap, let last = window.last { gaps = gaps + (arrivedAt - last.arrivedAt) }
    if window.isFull { removeFirst() }
    window.append(
      Arrival(bytes: bytes, sentAt: sentAt, arrivedAt: arrivedAt, isAfterGap: isAfterGap))
    while let first = window.first {
      let age = arrivedAt - first.arrivedAt
      let isLong = age - gaps > Self.duration && window.count > Self.packets
      guard isLong || age > Self.longest else { break }
      removeFirst()
    }
  }

  private mutating func removeFirst() {
    guard let removed = window.popFirst(), let first = window.first else { return }
    guard first.isAfterGap else { return }
    gaps = gaps - (first.arrivedAt - removed.arrivedAt)
  }

  /// The rate; nil before enough has arrived.
  package var rate: DataRate? {
    guard window.count >= Self.required.packets else { return nil }
    var bytes = 0
    var (unreported, arriving) = (Duration.zero, Duration.zero)
    var (firstSent, lastSent) = (window[0].sentAt, window[0].sentAt)
    var (longest, second) = (Duration.zero, Duration.zero)
    for index in 1..<window.count {
      let (packet, previous) = (window[index], window[index - 1])
      firstSent = min(firstSent, packet.sentAt)
      lastSent = max(lastSent, packet.sentAt)
      guard !packet.isAfterGap else {
        unreported = unreported + (packet.sentAt - previous.sentAt)
        continue
      }
      bytes += packet.bytes
      let wait = packet.arrivedAt - previous.arrivedAt
      arriving = arriving + wait
      (longest, second) = wait > longest ? (wait, longest) : (longest, max(second, wait))
    }
    // A path that stands still once is no slower: the longest interval counts as the second
    // longest.
    arriving = arriving - longest + second
    guard arriving >= Self.required.time else { return nil }
    return DataRate(bytes: Double(bytes), over: max(arriving, lastSent - firstSent - unreported))
  }
}
