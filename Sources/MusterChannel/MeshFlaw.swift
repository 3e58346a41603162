/// Bugs planted on purpose, so that a test can show that the simulator's checkers find them.
/// Nothing that is shipped sets one.
package enum MeshFlaw: Sendable, CaseIterable {
  /// Of an author's presences the last to arrive counts, not the newest.
  case mergeByArrival
  /// Ends of calls are not kept.
  case forgottenEnd
  /// Nobody's rights are looked at.
  case uncheckedRole
}
