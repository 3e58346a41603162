import MusterBase
import MusterChannel
import MusterDiscovery
import MusterLink

extension Node {
  /// Descriptions of the violated invariants of the node; empty if there are none. For tests and
  /// for the simulator, which checks after every step: this walks over every table.
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
    for (id, entry) in channels { found += faults(of: entry, id) }
    if channels.count > Limits.channels { found.append("\(channels.count) channels") }
    if !channels.isConsistent { found.append("a channel changed its deadline unnoticed") }
    if !media.sessions.isConsistent { found.append("media changed their deadline unnoticed") }
    return found + deadlineFaults()
  }

  /// The violations within a channel's engine, and those between the engine and the node.
  private func faults(of entry: Channel, _ id: ChannelID) -> [String] {
    var found = entry.state.checkInvariants()
    let linked = peers.keys.filter { $0.channel == id }.map(\.peer)
    if linked != entry.state.neighbourIDs { found.append("neighbours without links") }
    let isIn = entry.callState == .connected || entry.callState == .reconnecting
    if isIn != entry.state.isInCall {
      found.append("call state \(entry.callState.rawValue) while in call: \(entry.state.isInCall)")
    }
    return found
  }

  /// The node must wake no later than each of its parts.
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

  /// A search must be scheduled in the call's channel if the relay of a link is gone.
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
