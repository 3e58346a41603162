/// A budget that refills at a steady rate: how often something may be done for those not yet
/// proven.
public struct TokenBucket: Sendable {
  public let capacity: Double
  public let perSecond: Double
  private var tokens: Double
  private var updatedAt: Instant?

  public init(capacity: Double, perSecond: Double) {
    self.capacity = capacity
    self.perSecond = perSecond
    tokens = capacity
  }

  /// How full it is, from 0 to 1.
  public func fill(at now: Instant) -> Double {
    let since = updatedAt.map { max(now - $0, .zero) } ?? .zero
    return min(capacity, tokens + since.inSeconds * perSecond) / capacity
  }

  /// Takes `amount` if there is that much; false leaves the bucket as it was.
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
