import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterWire

/// The expected groups and roles, derived from the users' commands and the network.
extension Simulation {
  /// Whether every node must eventually consider this node a member.
  func isSurelyMember(_ id: NodeID) -> Bool {
    roles.role(of: id, at: WallTime.seconds(now)) > .none && !roles.isAmbiguous(id)
  }

  /// True if no node may eventually consider this node a member.
  func isSurelyNonMember(_ position: Int) -> Bool {
    let id = nodes[position].identity.id
    return roles.role(of: id, at: WallTime.seconds(now)) == .none && !roles.isAmbiguous(id)
  }

  /// The first disagreement within a connected group; nil for none. The check skips single nodes
  /// that need not be members, and groups that include a non-member but not the owner, because the
  /// nodes of such a group may not know of a removal.
  func disagreement(among views: [AgreementChecker.View]) -> String? {
    let judged = AgreementChecker.groups(views).filter { group in
      let positions = group.compactMap { present($0.own.id) }
      return positions.contains(0) || !positions.contains(where: isSurelyNonMember)
    }
    return AgreementChecker.disagreement(
      among: judged.flatMap { group in
        group.filter { group.count > 1 || isSurelyMember($0.own.id) }
      })
  }

  /// A clause to append to the description of a fault, naming an entry that only one of two
  /// connected nodes has; empty if there is no such entry.
  func documentDifference(among views: [AgreementChecker.View]) -> String {
    for group in AgreementChecker.groups(views) {
      let nodes = group.compactMap { present($0.own.id) }.map { self.nodes[$0] }
      guard let first = nodes.first else { continue }
      for other in nodes.dropFirst() {
        for (one, another) in [(first, other), (other, first)] {
          let known = entries(of: another)
          guard let entry = entries(of: one).first(where: { !known.contains($0) }),
            let kind = entry.entry.body.kind
          else { continue }
          return "; only \(one.label) has a \(kind) of \(label(entry.entry.author))"
        }
      }
    }
    return ""
  }

  private func entries(of node: SimulatedNode) -> [SignedEntry] {
    node.process?.node.entries(of: channel.id) ?? []
  }

  /// The indices of nodes that must agree about everything. In a created channel only nodes
  /// connected to the owner must agree, because all other nodes may lack the newest grants.
  func agreeing(_ views: [AgreementChecker.View]) -> [Int] {
    let groups = AgreementChecker.groups(views).map { group in
      group.compactMap { present($0.own.id) }.sorted()
    }
    guard scenario.kind == .created else { return groups.flatMap { $0 }.sorted() }
    return groups.first { $0.contains(0) } ?? []
  }

  /// The first difference from the expected groups, links or roles; nil for none.
  func surprise(in views: [AgreementChecker.View]) -> String? {
    let groups = AgreementChecker.groups(views).map { $0.compactMap { present($0.own.id) } }
    for expected in expectedGroups {
      let group = groups.first { $0.contains(expected[0]) } ?? []
      if let position = expected.first(where: { !group.contains($0) }) {
        return "\(nodes[position].label) and \(nodes[expected[0]].label) are not together"
      }
      if let fault = missingLink(in: expected, views) { return fault }
    }
    guard scenario.kind == .created else { return nil }
    return intruder(in: agreeing(views)) ?? wrongRole(views)
  }

  /// The groups that nodes must form according to the network and the roles.
  var expectedGroups: [[Int]] {
    let members = nodes.indices.filter {
      nodes[$0].isPresent && isSurelyMember(nodes[$0].identity.id)
    }
    if scenario.kind == .created {
      guard members.contains(0) else { return [] }
      return [paths.reached(from: 0, within: members, isUsable: canUnderstand)]
    }
    var groups: [[Int]] = []
    for position in members where !groups.contains(where: { $0.contains(position) }) {
      groups.append(paths.reached(from: position, within: members) { _, _ in true })
    }
    return groups
  }

  /// Whether one of two nodes announces under a key that the other also has. A node that was away
  /// during a key change shares no key with nodes that joined after the change.
  func canUnderstand(_ a: Int, _ b: Int) -> Bool {
    func keys(_ position: Int) -> [UInt32] {
      let first = nodes[position].firstKey.number
      return [first] + nodes[position].disk.keys.map(\.number).filter { $0 > first }
    }
    let (own, other) = (keys(a), keys(b))
    return own.contains(other[other.count - 1]) || other.contains(own[own.count - 1])
  }

  private func missingLink(in group: [Int], _ views: [AgreementChecker.View]) -> String? {
    guard group.count <= Topology.meshLimit else { return nil }
    for view in views {
      guard let position = present(view.own.id), group.contains(position) else { continue }
      let missing = group.first {
        paths.has(position, $0) && !view.linked.contains(nodes[$0].identity.id)
      }
      if let missing { return "\(nodes[position].label) has no link to \(nodes[missing].label)" }
    }
    return nil
  }

  private func intruder(in group: [Int]) -> String? {
    if let position = group.first(where: isSurelyNonMember) {
      return "\(nodes[position].label) is among them without a role"
    }
    for (member, removedIn) in roles.removed {
      guard let position = present(member), isSurelyNonMember(position),
        let epoch = nodes[position].process?.node.epoch(of: channel.id), epoch >= removedIn,
        nodes[position].firstKey.number < removedIn
      else { continue }
      return
        "\(nodes[position].label) has key \(epoch), from after its removal"
    }
    return nil
  }

  private func wrongRole(_ views: [AgreementChecker.View]) -> String? {
    let group = agreeing(views)
    // If a removal has split the network, the second owner's last grants may not have reached this
    // group.
    if let coOwner = scenario.coOwner, !group.contains(coOwner) { return nil }
    for view in views {
      guard let position = present(view.own.id), group.contains(position) else { continue }
      for member in view.members where isSurelyMember(member.id) {
        let role = roles.role(of: member.id, at: WallTime.seconds(now))
        if member.role != role {
          return
            "\(nodes[position].label) takes \(label(member.id)) for \(member.role.name), who is "
            + "\(role.name)"
        }
      }
    }
    return nil
  }
}
