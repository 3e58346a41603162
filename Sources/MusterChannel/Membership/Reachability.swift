import MusterBase

/// Computes which members can be reached over links that both ends report.
public enum Reachability {
  /// All nodes to which a path of links leads from `own`, in ascending order and without `own`.
  ///
  /// This node's own links count without a report. A link between two other nodes counts if each
  /// reports that it hears the other: a node that can send but not receive counts as absent
  /// (memberlist issue 45).
  public static func reachable(
    from own: NodeID, links: [NodeID], reports: [(member: NodeID, heard: [UInt64])]
  ) -> [NodeID] {
    let nodes = reports.sorted { $0.member.key.prefix < $1.member.key.prefix }
    let lists = nodes.map { $0.heard.sorted() }
    let prefixes = nodes.map(\.member.key.prefix)
    var isReached = [Bool](repeating: false, count: nodes.count)
    var reached = links.filter { $0 != own }
    var waiting: [Int] = []
    for link in links {
      if let index = find(link.key.prefix, in: prefixes), !isReached[index] {
        isReached[index] = true
        waiting.append(index)
      }
    }
    while let index = waiting.popLast() {
      for prefix in lists[index] {
        guard let other = find(prefix, in: prefixes), !isReached[other],
          find(prefixes[index], in: lists[other]) != nil, nodes[other].member != own
        else { continue }
        isReached[other] = true
        reached.append(nodes[other].member)
        waiting.append(other)
      }
    }
    return reached.sorted()
  }

  private static func find(_ value: UInt64, in sorted: [UInt64]) -> Int? {
    let index = sorted.partitionIndex { $0 >= value }
    return index < sorted.count && sorted[index] == value ? index : nil
  }
}
