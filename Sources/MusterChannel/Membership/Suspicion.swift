import MusterBase

/// Computes the timeout after which a suspicion counts as a failure; confirmations by other members
/// shorten the timeout.
///
/// This is Lifeguard's dynamic suspicion timeout (Dadgar, Phillips, Currey, arXiv 1707.00788,
/// section IV.B), which falls from the maximum to the minimum with the logarithm of the
/// confirmations.
public enum Suspicion {
  /// The timeout for this number of confirmations; `expected` confirmations reduce it to the
  /// minimum. With `expected` below 1, no confirmation is possible and the minimum applies.
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
