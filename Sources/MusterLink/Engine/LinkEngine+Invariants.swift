import MusterBase

extension LinkEngine {
  /// Descriptions of the inconsistencies between the engine's tables; empty if there are none. For
  /// tests and the simulator only, because the check reads all tables.
  package func checkInvariants() -> [String] {
    var found: [String] = []
    var used = 0
    for position in 0..<links.count {
      let id = links.keys[position]
      links[at: position].forEachIndex { index in
        used += 1
        guard indices[index] != id else { return }
        found.append("no entry from index \(index) to its link with \(id.peer)")
      }
      found += faults(ofLinkAt: position)
    }
    // Every index that a link uses has one entry, so any further entry belongs to no link.
    if used != indices.count {
      found.append("\(indices.count) indices, of which links use \(used)")
    }
    if links.count > Limits.links { found.append("\(links.count) links") }
    if memories.count > Self.memoryLimit { found.append("\(memories.count) handshake memories") }
    return found + paths.violations(inUse: (0..<links.count).map { links[at: $0].path })
  }

  private func faults(ofLinkAt position: Int) -> [String] {
    var found: [String] = []
    let id = links.keys[position]
    if openKeys.index(of: id.key) == nil {
      found.append("link with \(id.peer) under a closed key")
    }
    if links[at: position].unconfirmed.count > Limits.sessionsPerLink {
      found.append("too many unconfirmed sessions with \(id.peer)")
    }
    if let due = links[at: position].deadline(configuration), deadline.map({ due < $0 }) ?? true {
      found.append("deadline is later than that of the link with \(id.peer)")
    }
    return found
  }
}
