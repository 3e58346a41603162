import MusterBase
import MusterCore

/// Where to look for others: names and addresses given by the user or an invite.
extension MusterNode {
  /// Asks for the addresses of all names again: they may have changed.
  func resolve() {
    let (peers, rendezvous) = (peerNames, rendezvousNames)
    // The only tasks that a node starts: name look-ups block, and come back on the loop. One name
    // server that does not answer must not keep the others waiting.
    if !peers.endpoints.isEmpty {
      Task {
        let addresses = await peers.resolve()
        perform(node.setPeers(addresses, at: now))
      }
    }
    if !rendezvous.endpoints.isEmpty {
      Task {
        let addresses = await rendezvous.resolve()
        perform(node.setRendezvous(addresses, at: now))
      }
    }
  }

  /// Looks for others at these places, too; those that make no sense are left out.
  func add(peers: [String], rendezvous: [String]) {
    let before = (peerNames.endpoints, rendezvousNames.endpoints)
    peerNames.add(peers, limit: Limits.configuredPeers)
    rendezvousNames.add(rendezvous, limit: Limits.rendezvous)
    if before != (peerNames.endpoints, rendezvousNames.endpoints) { resolve() }
  }
}
