import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterDiscovery

/// Whether everyone is linked who can be, and nobody else.
extension ReachSimulation {
  /// So long after the last change everyone who can reach each other must be linked.
  static let limit = Duration.seconds(10)
  /// Sound on a link that stands comes four times as often.
  static let silence = Duration.seconds(2)
  /// All must have been well for so long in the end: longer than anyone believes in a link that is
  /// none. In some runs it is watched for `long`.
  static let rest = Duration.seconds(2)
  static let longRest = Duration.seconds(40)
  /// What nodes make of a new link takes a moment to be known everywhere.
  static let disputeLimit = Duration.seconds(2)

  mutating func check() {
    schedule(.check, in: Self.checkInterval)
    for index in nodes.indices { checkBounds(of: index) }
    guard isHealed, violation == nil else { return }
    let checker = ReachChecker(layout)
    let fault = gap(checker) ?? surplus(checker)
    let dispute = AgreementChecker.disagreement(among: views)
    if fault == nil, dispute == nil {
      settledAt = settledAt ?? now
      disputedSince = nil
    } else {
      settledAt = nil
      disputedSince = disputedSince ?? now
    }
    let isLate = now - healAt >= Self.limit
    if isLate, let fault { violated("reach", fault) }
    if isLate, let dispute, let since = disputedSince, now - since >= Self.disputeLimit {
      violated("agreement", dispute)
    }
    let rest = scenario.isLong ? Self.longRest : Self.rest
    if let settledAt, now - settledAt >= rest { finish() }
  }

  private mutating func checkBounds(of index: Int) {
    guard let node = nodes[index].node else { return }
    let fault = bounds.kept(
      members: node.members(of: channel).count, peers: node.statistics().count,
      participants: node.call(in: channel)?.participants.count ?? 0)
    if let fault { violated("bounds", "\(nodes[index].label): \(fault)") }
  }

  /// The network as it is.
  private var layout: ReachChecker.Layout {
    var servers = rendezvous.filter { $0.server != nil }.map(\.home)
    if let offering = scenario.offering, nodes[offering].node != nil,
      let home = internet.home(of: offering)
    {
      servers.append(home)
    }
    return ReachChecker.Layout(
      kinds: (0..<internet.homeCount).map { internet.kind(of: $0) }, cuts: cuts,
      members: nodes.indices.map { nodes[$0].node == nil ? nil : internet.home(of: $0) },
      rendezvous: servers)
  }

  // MARK: Links

  /// Two who could be linked, and are not.
  private func gap(_ checker: ReachChecker) -> String? {
    for one in nodes.indices {
      for other in nodes.indices where checker.mustBeLinked(one, other) {
        let (a, b) = (nodes[one].label, nodes[other].label)
        let relays = checker.relays(one, other).map { nodes[$0].label }
        let route =
          checker.isDirect(one, other)
          ? "directly" : "through \(relays.joined(separator: " "))"
        guard link(one, other) != nil else { return "\(a) has no link to \(b), \(route)" }
        let heard = heardAt[one * nodes.count + other]
        guard let heard, heard > healAt, now - heard < Self.silence else {
          return "\(a) does not hear \(b), \(route)"
        }
      }
    }
    return nil
  }

  /// Two who are linked, or think so, and cannot be; or not in the way that they think.
  private func surplus(_ checker: ReachChecker) -> String? {
    for one in nodes.indices {
      for statistics in nodes[one].node?.statistics() ?? [] {
        let a = nodes[one].label
        guard let other = owners[statistics.link.peer] else {
          return "\(a) is linked to a stranger"
        }
        let b = nodes[other].label
        guard checker.mayBeLinked(one, other) else { return "\(a) believes in a link to \(b)" }
        guard let relay = statistics.via else {
          if checker.hasPath(one, other) { continue }
          return "\(a) believes in a way of its own to \(b)"
        }
        guard let index = owners[relay], checker.mayRelay(index, between: one, and: other)
        else { return "\(a) believes in a way to \(b) through \(label(relay))" }
      }
    }
    return nil
  }

  private func link(_ one: Int, _ other: Int) -> PeerStatistics? {
    nodes[one].node?.statistics().first { $0.link.peer == nodes[other].identity.id }
  }

  /// How many pairs have which kind of link.
  var linkedPairs: (direct: Int, relayed: Int, apart: Int) {
    var counts = (direct: 0, relayed: 0, apart: 0)
    for one in nodes.indices where nodes[one].node != nil {
      for other in nodes.indices where other > one && nodes[other].node != nil {
        guard let link = link(one, other) else {
          counts.apart += 1
          continue
        }
        if link.via == nil { counts.direct += 1 } else { counts.relayed += 1 }
      }
    }
    return counts
  }

  private var views: [AgreementChecker.View] {
    nodes.compactMap { simulated in
      guard let node = simulated.node, let own = node.ownMember(in: channel) else { return nil }
      return AgreementChecker.View(
        own: own, members: node.members(of: channel), linked: node.statistics().map(\.link.peer),
        call: node.call(in: channel), digest: node.digest(of: channel))
    }
  }
}
