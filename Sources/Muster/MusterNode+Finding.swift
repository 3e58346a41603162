import MusterBase
import MusterCore
import MusterNetwork

/// Where to look for others: names and addresses given by the user, an invite, or the last time.
extension MusterNode {
  /// How long a name may take to resolve: over before all of them are asked for again.
  static let namePatience = Duration.seconds(8)

  /// Asks for the addresses of all names again: they may have changed.
  func resolve() {
    resolvePeers()
    resolveRendezvous()
    maintainPortMapping()
    resolveDHT()
  }

  private func resolvePeers() {
    guard !peerNames.endpoints.isEmpty, !peerNames.isBeingResolved else { return }
    peerNames.isBeingResolved = true
    let names = peerNames
    Task {
      let found = await names.resolve(within: Self.namePatience)
      peerNames.isBeingResolved = false
      guard !isStopping else { return }
      indices.named = found.flatMap(\.addresses)
      perform(node.setPeers(indices.all, at: now))
      if peerNames.endpoints != names.endpoints { resolvePeers() }
    }
  }

  private func resolveRendezvous() {
    guard !rendezvousNames.endpoints.isEmpty, !rendezvousNames.isBeingResolved else { return }
    rendezvousNames.isBeingResolved = true
    let names = rendezvousNames
    Task {
      let found = await names.resolve(within: Self.namePatience)
      rendezvousNames.isBeingResolved = false
      guard !isStopping else { return }
      perform(node.setRendezvous(found.flatMap(\.addresses), at: now))
      rememberRendezvous(found)
      warnOfSilence(found)
      if rendezvousNames.endpoints != names.endpoints { resolveRendezvous() }
    }
  }

  /// Looks for others at these places, too; those that make no sense are left out.
  func add(peers: [String], rendezvous: [String]) {
    let before = (peerNames.endpoints, rendezvousNames.endpoints)
    peerNames.add(peers, limit: Limits.configuredPeers)
    rendezvousNames.add(rendezvous, limit: Limits.rendezvous)
    if before != (peerNames.endpoints, rendezvousNames.endpoints) { resolve() }
  }

  /// Says once that rendezvous were named and none of them answers: nobody beyond the LAN is found.
  private func warnOfSilence(_ found: [(endpoint: PeerResolver.Endpoint, addresses: [Address])]) {
    guard node.answeringRendezvous.isEmpty, !isStopping else {
      rendezvousAskedAt = nil
      return
    }
    guard let askedAt = rendezvousAskedAt else {
      rendezvousAskedAt = now
      return
    }
    guard !hasWarnedOfSilence, now - askedAt >= .seconds(Self.resolveSeconds - 1) else { return }
    hasWarnedOfSilence = true
    // Some may be from an invite: from others, that is.
    func shown(_ text: String) -> String { DisplayText.sanitized(text, limit: 80) }
    let names = found.map { shown($0.endpoint.text) }
    let unknown = found.filter(\.addresses.isEmpty).map { shown($0.endpoint.host) }
    emit(
      .warning(
        MusterError(
          unknown.count == found.count
            ? "no addresses are known of \(unknown.joined(separator: ", "))"
            : "no rendezvous answers: \(names.joined(separator: ", "))",
          hint: "muster doctor\(names.map { " --rendezvous \($0)" }.joined()) tells why")))
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
    writer.write(node.channelIDs.map { .rendezvous(texts, channel: $0) })
  }
}
