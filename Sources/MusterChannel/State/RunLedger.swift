import MusterBase

/// Tells an identity that runs on two machines at once from one that was restarted: runs of the
/// former take turns.
///
/// Entries of an ended run can arrive late, after those of the next, and look like its return; but
/// not again and again.
package struct RunLedger: Sendable {
  private struct Runs: Sendable {
    var current: UInt64
    var former: UInt64?
    var returns = 0
  }

  /// The number of returns that no ended run explains.
  static let enough = 3
  /// The most members whose runs are known; then all are forgotten, and returns count anew.
  static let capacity = 2 * Limits.peersPerChannel

  private var members = PeerTable<NodeID, Runs>()

  package init() {}

  /// Notes the run in which a member shows itself, by its boot id. Returns whether that proves that
  /// two of its runs are live, once.
  package mutating func note(_ run: UInt64, of member: NodeID) -> Bool {
    guard members.index(of: member) != nil else {
      if members.count >= Self.capacity { members = PeerTable() }
      members[member] = Runs(current: run)
      return false
    }
    return members.update(member) { runs in
      guard runs.current != run else { return false }
      let returns = runs.former == run
      if returns { runs.returns += 1 }
      (runs.former, runs.current) = (runs.current, run)
      return returns && runs.returns == Self.enough
    } ?? false
  }
}
