import MusterBase

/// The number of timer wake-ups by reason, for diagnosing a node that wakes too often.
struct WakeCounters {
  private var counts: [Wake.Reason: UInt64] = [:]
  /// Wake-ups at which nothing was due, because a datagram had moved the deadline.
  private var early: UInt64 = 0

  /// Counts one wake-up under the reason of its deadline.
  mutating func count(_ wake: Wake?, at now: Instant) {
    if let wake, wake.at <= now {
      counts[wake.reason, default: 0] &+= 1
    } else {
      early &+= 1
    }
  }
}

extension WakeCounters: CounterSet {
  var counted: [(name: String, value: UInt64)] {
    Wake.Reason.allCases.map { ($0.rawValue, counts[$0] ?? 0) } + [("early", early)]
  }
}
