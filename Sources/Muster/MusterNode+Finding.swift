import MusterBase
import MusterCore
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
    guard !peerNames.endpoints.isEmpty, !peerNames.isBeingResolved else { return }
    peerNames.isBeingResolved = true
    let names = peerNames
    Task {
      let found = await names.resolve(within: Self.namePatience)
      peerNames.isBeingResolved = false
      guard !isStopping else { return }
      peerAddresses.named = found.flatMap(\.addresses)
      perform(node.setPeers(peerAddresses.all, at: now))
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

  /// Adds peers and rendezvous servers, each as `HOST:PORT`; malformed texts are ignored.
  func add(peers: [String], rendezvous: [String]) {
    let before = (peerNames.endpoints, rendezvousNames.endpoints)
    peerNames.add(peers, limit: Limits.configuredPeers)
    rendezvousNames.add(rendezvous, limit: Limits.rendezvous)
    if before != (peerNames.endpoints, rendezvousNames.endpoints) { resolve() }
  }

  /// Warns once if no rendezvous server has answered for 9 s, because members beyond the LAN cannot
  /// be found then.
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
    // Names from an invite are untrusted text.
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

  /// Stores the rendezvous servers for the next start, beginning with the servers that answer; does
  /// nothing if no server answers.
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
