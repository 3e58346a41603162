import MusterBase

/// Counters of what the IP headers of received datagrams say.
package struct ReceivedTraffic: Equatable, Sendable {
  /// Datagrams that have kept, or were given, a code point other than the default (RFC 2474).
  package var marked: UInt64 = 0
  /// Datagrams by which a router reports that its queue grows (RFC 3168, CE).
  package var congestionExperienced: UInt64 = 0

  package init() {}

  /// Counts a datagram with this IPv4 type of service or IPv6 traffic class.
  package mutating func count(_ trafficClass: UInt8) {
    if trafficClass >> 2 != 0 { marked &+= 1 }
    if trafficClass & 3 == 3 { congestionExperienced &+= 1 }
  }
}

extension ReceivedTraffic: CounterSet {
  package var counted: [(name: String, value: UInt64)] {
    [("marked", marked), ("congestionExperienced", congestionExperienced)]
  }
}
