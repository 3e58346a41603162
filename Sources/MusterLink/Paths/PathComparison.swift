import MusterBase

/// A comparison of two direct paths to a peer by round trips measured at the same time.
struct PathComparison: Equatable, Sendable {
  let address: Address
  let newToken: UInt64
  let oldToken: UInt64
  let startedAt: Instant
  /// The time to wait for a sign of life over the old path once the new path has answered.
  let patience: Duration
  private(set) var newRoundTrip: Duration?
  private var old: Duration?
  private var isOver = false

  /// The smallest significant difference of round trips. Smaller differences are noise on a busy
  /// host and cannot be noticed in a call.
  private static let margin = Duration.milliseconds(10)
  /// The time within which a comparison without a response is not begun again.
  private static let openTime = Duration.seconds(1)

  init(
    address: Address, newToken: UInt64, oldToken: UInt64, startedAt: Instant, patience: Duration
  ) {
    self.address = address
    self.newToken = newToken
    self.oldToken = oldToken
    self.startedAt = startedAt
    self.patience = patience
  }

  /// Records a response; false if the response does not belong to this comparison.
  mutating func take(
    _ token: UInt64, from source: Address, current: Address, at now: Instant
  ) -> Bool {
    if token == newToken, source == address {
      newRoundTrip = newRoundTrip ?? now - startedAt
    } else if token == oldToken, source == current {
      old = old ?? now - startedAt
    } else {
      return false
    }
    return true
  }

  /// The time at which the comparison ends without a response over the old path; nil if the old
  /// path has responded, or the new one has not.
  var endsAt: Instant? {
    isOver || newRoundTrip == nil || old != nil ? nil : startedAt + patience
  }

  /// Whether responses are awaited.
  func isOpen(at now: Instant) -> Bool {
    !isOver && (newRoundTrip == nil || old == nil) && now - startedAt < max(patience, Self.openTime)
  }

  /// Records that the response over the old path is no longer awaited.
  mutating func end() { isOver = true }

  /// The earliest time of the next comparison if its address is `other`. A repetition of a complete
  /// comparison is delayed for longer: most members have an IPv4 and an IPv6 address, whose
  /// announcements arrive every few seconds.
  func end(for other: Address, _ configuration: LinkEngine.Configuration) -> Instant {
    let isRepeated = other == address && newRoundTrip != nil && old != nil
    return startedAt
      + (isRepeated ? configuration.repeatedComparisonInterval : configuration.comparisonInterval)
  }

  /// Whether the new path is better: its round trip is much shorter, or its address belongs to the
  /// local network and the old one does not, and its round trip is not significantly longer. Under
  /// these two rules, no two paths are each better than the other, so links do not oscillate.
  /// Private and link-local addresses are equally near: most LANs have both.
  func isWon(against current: Address) -> Bool {
    guard let new = newRoundTrip, let old else { return false }
    let isNearer = address.reach < .global && current.reach == .global
    return new * 1.5 + Self.margin < old || isNearer && new <= old + Self.margin
  }
}
