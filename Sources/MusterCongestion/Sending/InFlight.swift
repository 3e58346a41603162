import MusterBase

/// The packets of a path that no report covers yet.
///
/// Where reports stay away, since the path has become too narrow even for them, the bytes in flight
/// show it long before `Silence` does (the congestion window that Chromium sets for WebRTC).
struct InFlight: Sendable {
  /// The time beyond the round trip in which packets are reported: the interval of reports, one of
  /// which may be lost, and the growth of a queue (350 ms in Chromium).
  static let allowance = Duration.milliseconds(350)
  /// The time after which a packet counts no more: if nothing else is sent, no report says that it
  /// was lost, and there has to be something to report on.
  static let lifetime = Duration.seconds(2)
  /// The packets of so long a time are counted together.
  private static let interval = Duration.milliseconds(10)
  private static let capacity = 256

  private struct Slot {
    var from: Instant
    var bytes: Int
  }

  /// Oldest first.
  private var slots = RingBuffer<Slot>(capacity: capacity)
  private var bytes = 0

  mutating func sent(_ bytes: Int, at now: Instant) {
    self.bytes += bytes
    let last = slots.count - 1
    if last >= 0, now - slots[last].from < Self.interval {
      slots[last].bytes += bytes
    } else if let dropped = slots.append(Slot(from: now, bytes: bytes)) {
      self.bytes -= dropped.bytes
    }
  }

  /// Takes a report whose last packet was sent at `sentAt`.
  mutating func reported(until sentAt: Instant) {
    while let first = slots.first, first.from + Self.interval <= sentAt {
      slots.popFirst()
      bytes -= first.bytes
    }
  }

  /// The time by which what is in flight, sent at `rate`, exceeds what may be.
  func excess(at rate: DataRate, roundTrip: Duration, now: Instant) -> Duration {
    var counted = bytes
    for index in 0..<slots.count {
      guard now - slots[index].from > Self.lifetime else { break }
      counted -= slots[index].bytes
    }
    let time = Duration.seconds(Double(counted) / max(rate.bytes(in: .seconds(1)), 1))
    return max(time - roundTrip - Self.allowance, .zero)
  }
}
