import MusterBase

/// Which members of a channel are to have a link of their own.
public enum Topology {
  /// Up to so many members everyone is linked to everyone.
  public static let meshLimit = 24
  /// Beyond, each is linked to so many on either side in a ring by id: the graph is connected,
  /// stays so when any five neighbours vanish at once, and both ends of a link agree on it.
  public static let reach = 3

  /// Whether `a` and `b`, both among the sorted `members`, are to be linked. Participants of one
  /// call always are: media goes from each to each.
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
