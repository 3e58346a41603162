import MusterBase

/// The round trips of two direct paths to a peer, measured at the same moment.
struct PathComparison: Equatable, Sendable {
  let address: Address
  let newToken: UInt64
  let oldToken: UInt64
  let startedAt: Instant
  private(set) var newRoundTrip: Duration?
  private var old: Duration?

  /// Less than this is chance.
  private static let margin = Duration.milliseconds(3)

  init(address: Address, newToken: UInt64, oldToken: UInt64, startedAt: Instant) {
    self.address = address
    self.newToken = newToken
    self.oldToken = oldToken
    self.startedAt = startedAt
  }

  /// Whether it was an answer to this comparison.
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

  /// Whether the new path is better: by a good part faster, or nearer and no slower. The two rules
  /// leave no pair of paths of which each is better than the other.
  func isWon(against current: Address) -> Bool {
    guard let new = newRoundTrip, let old else { return false }
    let isNearer = address.reach < current.reach
    return new * 1.5 + Self.margin < old || isNearer && new <= old + Self.margin
  }
}
