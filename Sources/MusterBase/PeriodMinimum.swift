/// The least of the values of this period and of the one before: older ones are forgotten.
public struct PeriodMinimum<Value: Comparable & Sendable>: Sendable {
  private let period: Duration
  private var periodEnd: Instant?
  /// The least value of this period and of the one before.
  private var least: Value?
  private var leastBefore: Value?
  /// The least of both; nil before the first value.
  public private(set) var value: Value?

  /// Creates a minimum without values, which keeps one for one or two periods.
  public init(period: Duration) { self.period = period }

  /// Takes a value.
  public mutating func add(_ new: Value, at now: Instant) {
    if let periodEnd, now >= periodEnd { (leastBefore, least) = (least, nil) }
    if periodEnd.map({ now >= $0 }) ?? true { periodEnd = now + period }
    least = least.map { min($0, new) } ?? new
    value = least.map { least in leastBefore.map { min($0, least) } ?? least }
  }
}
