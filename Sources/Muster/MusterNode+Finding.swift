import MusterBase
import MusterCore

/// Where to look for others: names and addresses given by the user, an invite, or the last time.
extension MusterNode {
  /// Asks for the addresses of all names again: they may have changed.
  func resolve() {
    let (peers, rendezvous) = (peerNames, rendezvousNames)
    // Name look-ups block, and come back on the loop. One name server that does not answer must not
    // keep the others waiting.
    if !peers.endpoints.isEmpty {
      Task {
        let found = await peers.resolve()
        places.named = found.flatMap(\.addresses)
        perform(node.setPeers(places.all, at: now))
      }
    }
    if !rendezvous.endpoints.isEmpty {
      Task {
        let found = await rendezvous.resolve()
        perform(node.setRendezvous(found.flatMap(\.addresses), at: now))
        rememberRendezvous(found)
      }
    }
    tendPort()
    resolveDHT()
  }

  /// Looks for others at these places, too; those that make no sense are left out.
  func add(peers: [String], rendezvous: [String]) {
    let before = (peerNames.endpoints, rendezvousNames.endpoints)
    peerNames.add(peers, limit: Limits.configuredPeers)
    rendezvousNames.add(rendezvous, limit: Limits.rendezvous)
    if before != (peerNames.endpoints, rendezvousNames.endpoints) { resolve() }
  }

  /// Keeps for the next time which rendezvous answer, those first.
  private func rememberRendezvous(
    _ found: [(endpoint: PeerResolver.Endpoint, addresses: [Address])]
  ) {
    let answering = node.answeringRendezvous
    let good = found.filter { $0.addresses.contains(where: answering.contains) }
    guard let writer, !good.isEmpty else { return }
    let rest = found.filter { one in !good.contains { $0.endpoint == one.endpoint } }
    let texts = (good + rest).map(\.endpoint.text)
    guard texts != rememberedRendezvous else { return }
    rememberedRendezvous = texts
    writer.submit(node.channelIDs.map { .rendezvous(texts, channel: $0) }) { _ in }
  }
}
