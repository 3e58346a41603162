import MusterBase
import MusterChannel
import MusterDiscovery
import MusterLink
import MusterWire

/// The inputs from which the channels of a node were derived when they were last found consistent.
package struct ConsistentChannels: Sendable {
  fileprivate var bases = PeerTable<ChannelID, ChannelState.Basis>()

  /// No channel has been checked.
  package init() {}
}

extension Node {
  /// Descriptions of the violated invariants of the node; empty if there are none. For tests and
  /// for the simulator, which checks after every step: this walks over every table.
  package func checkInvariants() -> [String] {
    var consistent = ConsistentChannels()
    return checkInvariants(&consistent)
  }

  /// The same for the simulator, which asks after every step: it walks over every table, but
  /// compares only those channels with their derivation that have changed since they were found
  /// consistent.
  package func checkInvariants(_ consistent: inout ConsistentChannels) -> [String] {
    var found = links.checkInvariants()
    found += keyring.checkInvariants()
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
    for position in 0..<channels.count {
      let id = channels.keys[position]
      let linked = peers.keys.lazy.filter { $0.channel == id }.map(\.peer)
      found += channels[at: position].checkInvariants(linked: linked, since: &consistent.bases[id])
    }
    if channels.count > Limits.channels { found.append("\(channels.count) channels") }
    if !channels.isConsistent { found.append("a channel changed its deadline unnoticed") }
    if !media.sessions.isConsistent { found.append("media changed their deadline unnoticed") }
    return found + deadlineFaults()
  }

  /// The node must wake for each of its parts.
  private func deadlineFaults() -> [String] {
    var found: [String] = []
    let own = deadline
    func check(_ name: @autoclosure () -> String, _ part: Instant?) {
      guard let part, own.map({ part < $0 }) ?? true else { return }
      found.append("the node wakes too late for \(name())")
    }
    check("discovery", discovery.deadline)
    check("links", links.deadline)
    check("paths", links.paths.deadline)
    check("associations", associations.nextDeadline)
    check("relaying", relaying.deadline)
    check("rendezvous", server?.deadline)
    check("media", media.deadline)
    for position in 0..<channels.count {
      check("channel \(channels.keys[position])", channels[at: position].deadline)
    }
    for position in 0..<peers.count {
      check("peer \(peers.keys[position].peer)", peers[at: position].deadline)
    }
    return found
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

extension Channel {
  /// What its engine finds in itself, and where the node contradicts it.
  fileprivate func checkInvariants(
    linked: some Sequence<NodeID>, since basis: inout ChannelState.Basis?
  ) -> [String] {
    var found = state.checkInvariants(since: &basis)
    if !linked.elementsEqual(state.neighbourIDs) { found.append("neighbours without links") }
    let isIn = callState == .connected || callState == .reconnecting
    if isIn != state.isInCall {
      found.append("call state \(callState.rawValue) while in call: \(!isIn)")
    }
    return found
  }
}
