import MusterBase
import MusterCore
import MusterDiscovery
import MusterNetwork

/// Methods for resolving the peers and rendezvous servers named by the user, an invite or an
/// earlier run.
extension MusterNode {
  /// The timeout for resolving a name; shorter than the 10 s between resolutions.
  static let namePatience = Duration.seconds(8)

  /// Resolves all names again, because their addresses may have changed, and renews the port
  /// mapping if it is due.
  func resolve() {
    resolvePeers()
    resolveRendezvous()
    maintainPortMapping()
    resolveDHT()
  }

  private func resolvePeers() {
    guard !finding.peers.isBeingResolved else { return }
    guard !finding.peers.entries.isEmpty else { return usePeers([]) }
    finding.peers.isBeingResolved = true
    let names = finding.peers
    Task {
      let found = await names.resolve(within: Self.namePatience)
      finding.peers.isBeingResolved = false
      guard !isStopping else { return }
      usePeers(Self.contacts(found))
      warnOfNames(found)
      if finding.peers.entries != names.entries { resolvePeers() }
    }
  }

  private func usePeers(_ contacts: [Contact]) {
    guard contacts != finding.addresses.named else { return }
    finding.addresses.named = contacts
    perform(node.setPeers(finding.addresses.all, at: now))
  }

  private func resolveRendezvous() {
    guard !finding.rendezvous.isBeingResolved else { return }
    guard !finding.rendezvous.entries.isEmpty else {
      // Those of a channel that the node has left must not hear of it any more.
      return perform(node.setRendezvous([], at: now))
    }
    finding.rendezvous.isBeingResolved = true
    let names = finding.rendezvous
    Task {
      let found = await names.resolve(within: Self.namePatience)
      finding.rendezvous.isBeingResolved = false
      guard !isStopping else { return }
      perform(node.setRendezvous(Self.contacts(found), at: now))
      rememberRendezvous(found)
      warnOfRendezvous(found)
      if finding.rendezvous.entries != names.entries { resolveRendezvous() }
    }
  }

  typealias Found = (entry: PeerResolver.Entry, addresses: [Address])

  private static func contacts(_ found: [Found]) -> [Contact] {
    found.flatMap { one in one.addresses.map { Contact($0, for: one.entry.channels) } }
  }

  /// Adds the peers and rendezvous servers of a channel, each as `HOST:PORT`; malformed texts are
  /// ignored.
  func add(peers: [String], rendezvous: [String], for channel: ChannelID) {
    changeNames {
      $0.peers.add(peers, for: channel, limit: Limits.configuredPeers)
      $0.rendezvous.add(rendezvous, for: channel, limit: Limits.rendezvous)
    }
  }

  /// Forgets the peers and rendezvous servers that serve this channel alone.
  func removeNames(of channel: ChannelID) {
    guard !isStopping else { return }
    finding.rememberedRendezvous[channel] = nil
    changeNames {
      $0.peers.remove(channel)
      $0.rendezvous.remove(channel)
    }
  }

  private func changeNames(_ change: (inout Finding) -> Void) {
    let before = (finding.peers.entries, finding.rendezvous.entries)
    change(&finding)
    if before != (finding.peers.entries, finding.rendezvous.entries) { resolve() }
    node.setFinders(
      rendezvousServers: finding.rendezvous.entries.count,
      peers: !finding.peers.entries.isEmpty, dht: finding.dht != nil)
  }

  /// Stores the rendezvous servers of each channel for the next start, beginning with those that
  /// answer; does nothing for a channel of which none answers.
  private func rememberRendezvous(_ found: [Found]) {
    guard let store else { return }
    let answering = node.answeringRendezvous
    for channel in node.channelIDs {
      let serving = found.filter { $0.entry.serves(channel) }
      let good = serving.filter { $0.addresses.contains(where: answering.contains) }
      let rest = serving.filter { one in !good.contains { $0.entry == one.entry } }
      let texts = (good + rest).map(\.entry.endpoint.text)
      guard !good.isEmpty, texts != finding.rememberedRendezvous[channel] else { continue }
      finding.rememberedRendezvous[channel] = texts
      store.write([.rendezvous(texts, channel: channel)]) { _ in }
    }
  }
}
