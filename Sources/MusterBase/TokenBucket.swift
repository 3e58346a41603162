/// A token bucket, which limits the rate of work on behalf of other nodes but allows bursts.
public struct TokenBucket: Sendable {
  /// The maximum number of tokens, which is also the initial number.
  public let capacity: Double
  /// The number of tokens added per second.
  public let perSecond: Double
  private var tokens: Double
  private var updatedAt: Instant?

  public init(capacity: Double, perSecond: Double) {
    self.capacity = capacity
    self.perSecond = perSecond
    tokens = capacity
  }

  /// Takes `amount` tokens if available; otherwise returns false and takes none.
  public mutating func take(_ amount: Double = 1, at now: Instant) -> Bool {
    if let updatedAt, now > updatedAt {
      tokens = min(capacity, tokens + (now - updatedAt).inSeconds * perSecond)
    }
    updatedAt = max(updatedAt ?? now, now)
    guard tokens >= amount else { return false }
    tokens -= amount
    return true
  }
}
