import MusterBase

/// Decides which members of a channel link to each other directly.
public enum Topology {
  /// The number of members up to which every member links to every other (full mesh).
  public static let meshLimit = 24
  /// The number of members that a member links to on each side of a ring ordered by id, in channels
  /// of more than `meshLimit` members. The graph stays connected when any five members vanish at
  /// once, and both ends agree on every link.
  public static let reach = 3

  /// Whether `a` and `b`, both among the sorted `members`, should be linked. Participants of one
  /// call are always linked, since each sends media directly to every other.
  public static func wants(
    _ a: NodeID, _ b: NodeID, members: [NodeID], bothInCall: Bool
  ) -> Bool {
    guard members.count > meshLimit, !bothInCall else { return true }
    let index = members.partitionIndex { $0 >= a }
    let other = members.partitionIndex { $0 >= b }
    let distance = abs(index - other)
    return min(distance, members.count - distance) <= reach
  }
}
