import MusterBase

/// The rate at which packets arrive, over the last second or more: what the path has carried
/// ("robust throughput estimator" in WebRTC).
package struct AcknowledgedRate: Sendable {
  /// The window has at least this many packets and this duration, as far as there are as many.
  static let packets = 20
  static let duration = Duration.seconds(1)
  /// No window is longer, or has more packets.
  static let longest = Duration.seconds(5)
  static let most = 500
  /// The packets without which there is no estimate.
  static let required = 10

  private struct Arrival {
    let bytes: Int
    let sentAt: Instant
    let arrivedAt: Instant
  }

  /// In the order of arrival.
  private var window = RingBuffer<Arrival>(capacity: most)

  package init() {}

  /// Adds a packet, in the order of arrival.
  package mutating func add(bytes: Int, sentAt: Instant, arrivedAt: Instant) {
    // A receiver whose clock jumps begins anew.
    if let last = window.last, arrivedAt < last.arrivedAt { window.removeAll() }
    window.append(Arrival(bytes: bytes, sentAt: sentAt, arrivedAt: arrivedAt))
    while let first = window.first {
      let age = arrivedAt - first.arrivedAt
      let isLong = age > Self.duration && window.count > Self.packets
      guard isLong || age > Self.longest else { break }
      window.popFirst()
    }
  }

  /// The rate; nil before enough has arrived.
  package var rate: DataRate? {
    guard window.count >= Self.required, let first = window.first, let last = window.last else {
      return nil
    }
    var bytes = 0
    var (firstSent, lastSent) = (first.sentAt, first.sentAt)
    var lastSentBytes = first.bytes
    var (gap, secondGap) = (Duration.zero, Duration.zero)
    var previous = first.arrivedAt
    for index in 0..<window.count {
      let packet = window[index]
      bytes += packet.bytes
      firstSent = min(firstSent, packet.sentAt)
      if packet.sentAt >= lastSent { (lastSent, lastSentBytes) = (packet.sentAt, packet.bytes) }
      let wait = packet.arrivedAt - previous
      if wait > gap { (gap, secondGap) = (wait, gap) } else { secondGap = max(secondGap, wait) }
      previous = packet.arrivedAt
    }
    // n packets span n - 1 intervals. The longest interval, such as that of a path that stood
    // still, is taken as long as the second longest.
    let arriving = last.arrivedAt - first.arrivedAt - gap + secondGap
    let sending = lastSent - firstSent
    let least = Duration.milliseconds(1)
    return min(
      DataRate(bytes: Double(bytes - first.bytes), over: max(arriving, least)),
      DataRate(bytes: Double(bytes - lastSentBytes), over: max(sending, least)))
  }
}
