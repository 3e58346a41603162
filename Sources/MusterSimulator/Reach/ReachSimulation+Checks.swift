import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterDiscovery

/// Checks that a pair of members is linked if and only if the two can reach each other.
extension ReachSimulation {
  /// The time limit for linking all pairs that can reach each other, counted from the last change.
  static let limit = Duration.seconds(10)
  /// The time without audio after which a link counts as broken; a working link carries a packet
  /// every 250 ms.
  static let silence = Duration.seconds(2)
  /// The length of the stable period that ends a run; long runs use `longRest` to detect links that
  /// break later.
  static let rest = Duration.seconds(2)
  static let longRest = Duration.seconds(40)
  /// The longest permitted disagreement: the effects of a new link take time to spread.
  static let disputeLimit = Duration.seconds(2)

  mutating func check() {
    schedule(.check, in: Self.checkInterval)
    for index in nodes.indices { checkBounds(of: index) }
    checkPaths()
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
    guard let process = nodes[index].process else { return }
    let fault = bounds.kept(
      members: process.node.members(of: channel).count,
      peers: process.node.statistics(at: now).count,
      participants: process.node.call(in: channel)?.participants.count ?? 0)
    if let fault { violated("bounds", "\(nodes[index].label): \(fault)") }
  }

  /// The current layout of the network and the running processes, as input of the checker.
  private var layout: ReachChecker.Layout {
    var servers = rendezvous.filter { $0.server != nil }.map(\.home)
    if let offering = scenario.offering, nodes[offering].process != nil,
      let home = network.home(of: offering)
    {
      servers.append(home)
    }
    return ReachChecker.Layout(
      kinds: (0..<network.homeCount).map { network.kind(of: $0) }, cuts: cuts,
      members: nodes.indices.map { nodes[$0].process == nil ? nil : network.home(of: $0) },
      rendezvous: servers)
  }

  // MARK: Paths

  /// Checks the paths between the hosts of each home, which always reach each other there.
  private mutating func checkPaths() {
    for one in nodes.indices {
      for other in nodes.indices where one != other {
        let isHome = network.home(of: one) == network.home(of: other)
        let route = isHome ? link(one, other).flatMap(\.route) : nil
        guard let fault = steadiness.seen(route, from: one, to: other, at: now) else { continue }
        violated("paths", "\(nodes[one].label) to \(nodes[other].label): \(fault)")
      }
    }
  }

  // MARK: Links

  /// The fault when a member lacks a link that it must have, or receives no audio over such a link;
  /// nil for none.
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

  /// The fault when a member reports a link, or a path of a link, that cannot exist; nil for none.
  private func surplus(_ checker: ReachChecker) -> String? {
    for one in nodes.indices {
      for statistics in nodes[one].process?.node.statistics(at: now) ?? [] {
        let a = nodes[one].label
        guard let other = owners[statistics.link.peer] else {
          return "\(a) is linked to an outsider"
        }
        let b = nodes[other].label
        guard checker.mayBeLinked(one, other) else { return "\(a) believes in a link to \(b)" }
        guard let relay = statistics.via else {
          if checker.hasPath(one, other) { continue }
          return "\(a) believes in a direct path to \(b)"
        }
        guard let index = owners[relay], checker.mayRelay(index, between: one, and: other)
        else { return "\(a) believes in a path to \(b) through \(label(relay))" }
      }
    }
    return nil
  }

  private func link(_ one: Int, _ other: Int) -> PeerStatistics? {
    nodes[one].process?.node.statistics(at: now).first { $0.link.peer == nodes[other].identity.id }
  }

  /// The number of pairs of running members by kind of link.
  var linkedPairs: (direct: Int, relayed: Int, apart: Int) {
    var counts = (direct: 0, relayed: 0, apart: 0)
    for one in nodes.indices where nodes[one].process != nil {
      for other in nodes.indices where other > one && nodes[other].process != nil {
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
      guard let process = simulated.process, let own = process.node.ownMember(in: channel) else {
        return nil
      }
      return AgreementChecker.View(
        own: own, members: process.node.members(of: channel),
        linked: process.node.statistics(at: now).map(\.link.peer),
        call: process.node.call(in: channel), digest: process.node.digest(of: channel))
    }
  }
}
