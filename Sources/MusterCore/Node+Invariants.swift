import MusterBase
import MusterChannel
import MusterDiscovery
import MusterLink

extension Node {
  /// What contradicts itself in the node's state, in words; empty when nothing does. For tests and
  /// the simulator, which asks after every step: it walks over every table.
  package func checkInvariants() -> [String] {
    var found = links.checkInvariants() + keyring.checkInvariants()
    found += associations.checkInvariants { links.route(of: $0) != nil }
    found += relaying.checkInvariants(
      isUp: { peers.index(of: $0) != nil }, isOpen: { channels.index(of: $0) != nil })
    for link in peers.keys {
      if channels.index(of: link.channel) == nil {
        found.append("association with \(link.peer) in a closed channel")
      }
      if let fault = relayFault(of: link) { found.append(fault) }
    }
    for channel in channels.keys where keyring.current(of: channel) == nil {
      found.append("channel \(channel) without a key")
    }
    if channels.count > Limits.channels { found.append("\(channels.count) channels") }
    if !channels.isConsistent { found.append("a channel changed its deadline unnoticed") }
    return found + checkChannelInvariants() + deadlineFaults()
  }

  /// The node must wake for each of its parts.
  private func deadlineFaults() -> [String] {
    var parts: [(name: String, at: Instant?)] = [
      ("discovery", discovery.deadline), ("links", links.deadline), ("paths", links.paths.deadline),
      ("associations", associations.nextDeadline), ("relaying", relaying.deadline),
      ("rendezvous", server?.deadline), ("media", media.deadline),
    ]
    for (channel, entry) in channels { parts.append(("channel \(channel)", entry.deadline)) }
    for (link, peer) in peers { parts.append(("peer \(link.peer)", peer.deadline)) }
    let own = deadline
    return parts.compactMap { part in
      guard let due = part.at, own.map({ due < $0 }) ?? true else { return nil }
      return "the node wakes too late for \(part.name)"
    }
  }

  /// A relay that is gone is looked for anew in a call: its channel's search is scheduled.
  private func relayFault(of link: LinkID) -> String? {
    guard case .relayed(_, let relay, let channel)? = path(of: link)?.route,
      channels[channel]?.state.isInCall ?? false
    else { return nil }
    let relayLink = LinkID(channel: channel, peer: relay)
    guard peers.index(of: relayLink) == nil || isRelayed(relayLink) else { return nil }
    return relaying.isSearching(channel)
      ? nil : "\(link.peer) is reached through \(relay), which is no neighbour"
  }
}
