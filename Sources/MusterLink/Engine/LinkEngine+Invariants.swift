import MusterBase

extension LinkEngine {
  /// Contradictions between the engine's tables, described; empty if there are none. For tests and
  /// the simulator: it walks all tables.
  package func checkInvariants() -> [String] {
    var found: [String] = []
    for (index, id) in indices {
      let isKnown = links.index(of: id).map { links[at: $0].indices.contains(index) } ?? false
      if !isKnown { found.append("index \(index) leads to a link with \(id.peer) without it") }
    }
    for (id, link) in links {
      for index in link.indices where indices[index] != id {
        found.append("no entry from index \(index) to its link with \(id.peer)")
      }
      if openKeys.index(of: id.key) == nil {
        found.append("link with \(id.peer) under a closed key")
      }
      if link.unconfirmed.count > Limits.sessionsPerLink {
        found.append("\(link.unconfirmed.count) unconfirmed sessions with \(id.peer)")
      }
      if let due = link.deadline(configuration), deadline.map({ due < $0 }) ?? true {
        found.append("deadline is later than that of the link with \(id.peer)")
      }
    }
    if links.count > Limits.links { found.append("\(links.count) links") }
    if memories.count > Self.memoryLimit { found.append("\(memories.count) handshake memories") }
    return found + paths.violations(inUse: links.map { $0.value.path })
  }
}
