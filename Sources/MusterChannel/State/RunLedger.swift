import MusterBase

/// Tells an identity that runs on two machines at once from one that was restarted: runs of the
/// former take turns.
///
/// Entries of an ended run can arrive late, after those of the next, and look like its return; but
/// not again and again. A node that has lost its disk meets several of its old entries at once, one
/// from each neighbour: what returns within `apart` counts once.
package struct RunLedger: Sendable {
  private struct Runs: Sendable {
    var current: UInt64
    var former: UInt64?
    var returns = 0
    var countedAt: Instant?
  }

  /// The number of returns that no ended run explains.
  static let enough = 3
  /// The time from one return to the next that counts: half of that after which a run whose
  /// presence is displaced publishes it again (`ChannelState.displacedInterval`).
  static let apart = Duration.milliseconds(500)
  /// The most members whose runs are known; then all are forgotten, and returns count anew.
  static let capacity = 2 * Limits.peersPerChannel

  private var members = PeerTable<NodeID, Runs>()

  package init() {}

  /// Notes the run in which a member shows itself, by its boot id. Returns whether that proves that
  /// two of its runs are live, once.
  package mutating func note(_ run: UInt64, of member: NodeID, at now: Instant) -> Bool {
    guard members.index(of: member) != nil else {
      if members.count >= Self.capacity { members = PeerTable() }
      members[member] = Runs(current: run)
      return false
    }
    return members.update(member) { runs in
      guard runs.current != run else { return false }
      let returns = runs.former == run
      (runs.former, runs.current) = (runs.current, run)
      guard returns, runs.countedAt.map({ now - $0 >= Self.apart }) ?? true else { return false }
      runs.countedAt = now
      runs.returns += 1
      return runs.returns == Self.enough
    } ?? false
  }
}
