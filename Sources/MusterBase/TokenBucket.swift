/// A token bucket, which limits the rate of work on behalf of other nodes but allows bursts.
public struct TokenBucket: Sendable {
  /// The maximum number of tokens, which is also the initial number.
  public private(set) var capacity: Double
  /// The number of tokens added per second.
  public private(set) var perSecond: Double
  private var tokens: Double
  private var updatedAt: Instant?

  public init(capacity: Double, perSecond: Double) {
    self.capacity = capacity
    self.perSecond = perSecond
    tokens = capacity
  }

  /// Whether `take` would take this amount now.
  public func has(_ amount: Double = 1, at now: Instant) -> Bool {
    var bucket = self
    return bucket.take(amount, at: now)
  }

  /// Takes `amount` tokens if available; otherwise returns false and takes none.
  public mutating func take(_ amount: Double = 1, at now: Instant) -> Bool {
    refill(at: now)
    guard tokens >= amount else { return false }
    tokens -= amount
    return true
  }

  /// Changes the capacity and the rate; tokens beyond the new capacity are lost.
  public mutating func set(capacity: Double, perSecond: Double, at now: Instant) {
    guard capacity != self.capacity || perSecond != self.perSecond else { return }
    refill(at: now)
    (self.capacity, self.perSecond) = (capacity, perSecond)
    tokens = min(tokens, capacity)
  }

  private mutating func refill(at now: Instant) {
    if let updatedAt, now > updatedAt {
      tokens = min(capacity, tokens + (now - updatedAt).inSeconds * perSecond)
    }
    updatedAt = max(updatedAt ?? now, now)
  }
}
