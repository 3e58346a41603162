import MusterBase

/// How often the timer called `tick`, by what was due then: for a node that wakes too often.
struct WakeCounters {
  private var counts: [Wake.Reason: UInt64] = [:]
  /// Nothing was due any more: a datagram had moved the deadline.
  private var early: UInt64 = 0

  /// Counts one tick, by the deadline that it is for.
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
