import MusterBase
import MusterCore
import MusterNetwork

/// The state of the warnings about peers and servers that do not answer, each given once.
struct Silence {
  /// The start of the current silence of all rendezvous servers; nil while a server answers.
  var rendezvousAskedAt: Instant?
  var hasWarnedOfRendezvous = false
  /// The named peers that have had an address, or a warning because they had none.
  var settledNames: [PeerResolver.Endpoint] = []
  /// Whether this node's identity is known to run elsewhere, too.
  var hasWarnedOfTwin = false
}

/// Warnings about peers, servers and members that are not heard, with what to do.
extension MusterNode {
  /// Warns that nobody else is in a channel, with the likely reason.
  func explainSolitude() {
    guard !isStopping else { return }
    let names = finding.peers.entries
    let isOnLANOnly = configuration.lan && finding.rendezvous.entries.isEmpty && finding.dht == nil
    let reasons = node.reasonsForSolitude(
      hasPeers: { channel in names.contains { $0.serves(channel) } }, isOnLANOnly: isOnLANOnly,
      at: now)
    for (channel, reason) in reasons {
      let peers = names.filter { $0.serves(channel) }.map { Self.shown($0.endpoint.text) }
      emit(
        .warning(
          MusterError(
            solitude: reason, channel: node.name(of: channel) ?? "", peers: peers,
            port: sockets.port)))
    }
  }

  /// Warns of each named peer that has no address at first: the name is wrong, or nothing resolves
  /// it. A name server that fails later is no fault of the name.
  func warnOfNames(_ found: [Found]) {
    for one in found where !silence.settledNames.contains(one.entry.endpoint) {
      silence.settledNames.append(one.entry.endpoint)
      guard one.addresses.isEmpty else { continue }
      emit(
        .warning(
          MusterError(
            "no address is known of \(Self.shown(one.entry.endpoint.host))",
            hint: "it is looked up again every \(Self.resolveSeconds) s; check the name, and "
              + "whether this machine resolves others, or give --peer an address")))
    }
  }

  /// Warns once if no rendezvous server has answered for 9 s, because members beyond the LAN cannot
  /// be found then.
  func warnOfRendezvous(_ found: [Found]) {
    guard node.answeringRendezvous.isEmpty, !isStopping else {
      silence.rendezvousAskedAt = nil
      return
    }
    guard let askedAt = silence.rendezvousAskedAt else {
      silence.rendezvousAskedAt = now
      return
    }
    guard !silence.hasWarnedOfRendezvous, now - askedAt >= .seconds(Self.resolveSeconds - 1)
    else { return }
    silence.hasWarnedOfRendezvous = true
    let names = found.map { Self.shown($0.entry.endpoint.text) }
    let unknown = found.filter(\.addresses.isEmpty).map { Self.shown($0.entry.endpoint.host) }
    emit(
      .warning(
        MusterError(
          unknown.count == found.count
            ? "no addresses are known of \(unknown.joined(separator: ", "))"
            : "no rendezvous answers: \(names.joined(separator: ", "))",
          hint: "muster doctor\(names.map { " --rendezvous \($0)" }.joined()) tells why")))
  }

  /// The warning that this node's identity runs elsewhere, too; nil if it was given before.
  func warningOfTwin(at address: Address?) -> Event? {
    guard !silence.hasWarnedOfTwin else { return nil }
    silence.hasWarnedOfTwin = true
    return .warning(MusterError(twinAt: address))
  }

  /// Names from an invite are untrusted text.
  private static func shown(_ text: String) -> String { DisplayText.sanitized(text, limit: 80) }
}
