import MusterBase

/// A comparison of two direct paths to a peer by round trips measured at the same time.
struct PathComparison: Equatable, Sendable {
  let address: Address
  let newToken: UInt64
  let oldToken: UInt64
  let startedAt: Instant
  private(set) var newRoundTrip: Duration?
  private var old: Duration?
  private var isOver = false

  /// The smallest significant difference of round trips; smaller differences are noise.
  private static let margin = Duration.milliseconds(3)
  /// The time to wait for the response over the old path; a neighbour is usually heard every few
  /// hundred milliseconds.
  private static let patience = Duration.seconds(1)

  init(address: Address, newToken: UInt64, oldToken: UInt64, startedAt: Instant) {
    self.address = address
    self.newToken = newToken
    self.oldToken = oldToken
    self.startedAt = startedAt
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
    isOver || newRoundTrip == nil || old != nil ? nil : startedAt + Self.patience
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

  /// Whether the new path is better: its round trip is much shorter, or its address has a nearer
  /// scope and its round trip is not significantly longer. Under these two rules, no two paths are
  /// each better than the other, so links do not oscillate.
  func isWon(against current: Address) -> Bool {
    guard let new = newRoundTrip, let old else { return false }
    let isNearer = address.reach < current.reach
    return new * 1.5 + Self.margin < old || isNearer && new <= old + Self.margin
  }
}
