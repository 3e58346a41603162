import MusterBase

/// The schedule and current result of port mapping. The owner calls `begin(at:)` every few seconds.
package struct PortKeeping: Sendable {
  /// The mapping most recently granted by the gateway.
  package private(set) var mapping: PortMapping?
  /// The time at which `mapping` expires unless renewed.
  private var goodUntil = Instant.zero
  private var isAsking = false
  private var dueAt = Instant.zero

  /// The interval between a failed request and the next, which may succeed because the gateway has
  /// been restarted or replaced.
  package static let retry = Duration.seconds(300)
  /// The minimum renewal interval, however short a lifetime the gateway grants.
  package static let soonestRenewal = Duration.seconds(60)
  /// The maximum renewal interval, also for mappings without expiry, because a restart of the
  /// gateway deletes all mappings.
  package static let latestRenewal = Duration.seconds(3600)

  /// Creates the initial state: no mapping, and a request due at once.
  package init() {}

  /// The external address to announce; nil without a mapping that is reachable from outside.
  package var announced: Address? {
    mapping.flatMap { $0.leadsOutside ? $0.outside : nil }
  }

  /// Whether to send a request now; if true, `answered` must follow.
  package mutating func begin(at now: Instant) -> Bool {
    guard !isAsking, now >= dueAt else { return false }
    isAsking = true
    dueAt = Instant(nanoseconds: .max)
    return true
  }

  /// Records the result of a request; true if the announced address has changed. After a failed
  /// request the previous mapping is kept until it expires, because a request or its answer may
  /// have been lost.
  package mutating func answered(_ answer: PortMapping?, at now: Instant) -> Bool {
    let before = announced
    if let answer {
      mapping = answer
      goodUntil = answer.lifetime > .zero ? now + answer.lifetime : Instant(nanoseconds: .max)
    } else if now >= goodUntil {
      mapping = nil
    }
    isAsking = false
    // If addresses changed meanwhile, the next request stays due at once.
    dueAt = min(dueAt, now + Self.wait(after: answer))
    return announced != before
  }

  /// Makes a request due at once after a change of this machine's addresses: a new gateway may not
  /// have the mapping, which is dropped if that request fails.
  package mutating func addressesChanged(at now: Instant) {
    dueAt = now
    goodUntil = now
  }

  /// The time until the next request: half of the lifetime after a success (RFC 6886 section 3.3).
  private static func wait(after answer: PortMapping?) -> Duration {
    guard let answer else { return retry }
    guard answer.lifetime > .zero else { return latestRenewal }
    return min(max(answer.lifetime / 2, soonestRenewal), latestRenewal)
  }
}
