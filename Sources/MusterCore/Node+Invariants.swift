import MusterBase
import MusterChannel
import MusterDiscovery
import MusterLink
import MusterWire

/// For each channel, the inputs of its derived state at the time of the last successful check.
package struct ConsistentChannels: Sendable {
  fileprivate var bases = PeerTable<ChannelID, ChannelState.Basis>()

  /// Creates a record of a node whose channels have not been checked.
  package init() {}
}

extension Node {
  /// Descriptions of the violated invariants of the node; empty if there are none. For tests, since
  /// the check walks over every table and derives the state of every channel again.
  package mutating func checkInvariants() -> [String] {
    var consistent = ConsistentChannels()
    return checkInvariants(&consistent)
  }

  /// Performs the same check for the simulator after every step: derives again only the states of
  /// channels that have changed since they were found consistent.
  package mutating func checkInvariants(_ consistent: inout ConsistentChannels) -> [String] {
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
    for (link, peer) in peers where !peer.isShown {
      let hasLostMembership = channels[link.channel]?.state.hasLostMembership ?? true
      if !hasLostMembership {
        found.append("a link to \(link.peer) of which the host has not heard")
      }
    }
    if channels.count > Limits.channels { found.append("\(channels.count) channels") }
    if !channels.isConsistent { found.append("a channel changed its deadline unnoticed") }
    if !media.sessions.isConsistent { found.append("media changed their deadline unnoticed") }
    found += congestion.checkInvariants { links.route(of: $0) != nil }
    return found + deadlineFaults()
  }

  /// Descriptions of the parts that are due before the node's own deadline.
  private mutating func deadlineFaults() -> [String] {
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
    check("congestion", congestion.deadline)
    for position in 0..<channels.count {
      check("channel \(channels.keys[position])", channels[at: position].deadline)
    }
    for position in 0..<peers.count {
      check("peer \(peers.keys[position].peer)", peers[at: position].deadline)
    }
    return found
  }

  /// The fault of a link whose relay is gone while no search is scheduled in the call's channel;
  /// nil if there is none.
  private mutating func relayFault(of link: LinkID) -> String? {
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
  /// The violated invariants of the channel's state, and its contradictions with the node's state.
  fileprivate func checkInvariants(
    linked: some Sequence<NodeID>, since basis: inout ChannelState.Basis?
  ) -> [String] {
    var found = state.checkInvariants(since: &basis)
    if !linked.elementsEqual(state.neighbourIDs) { found.append("neighbours without links") }
    let fits =
      state.isInCall
      ? callState != .disconnected : [.connecting, .disconnected].contains(callState)
    if !fits { found.append("call state \(callState.rawValue) while in call: \(state.isInCall)") }
    return found
  }
}
