import MusterBase

/// How long a suspicion lasts before it counts as certain: the shorter, the more others share it.
///
/// Lifeguard's dynamic suspicion timeout (Dadgar, Phillips, Currey, arXiv 1707.00788, section
/// IV.B): from the maximum to the minimum with the logarithm of the confirmations.
public enum Suspicion {
  /// How long a suspicion lasts with so many confirmations, of which `expected` bring it down to
  /// the minimum; none are to be had below 1.
  public static func timeout(
    confirmations: Int, expected: Int, minimum: Duration, maximum: Duration
  ) -> Duration {
    guard expected >= 1 else { return minimum }
    let share = Math.log(Double(max(confirmations, 0)) + 1) / Math.log(Double(expected) + 1)
    let span = maximum - minimum
    let shortened = maximum - .nanoseconds(Int64(Double(span.wholeNanoseconds) * share))
    return max(shortened, minimum)
  }
}
