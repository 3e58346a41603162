import MusterBase
import MusterCore
import MusterCrypto
import MusterMesh
import MusterWire

/// What owners do in created channels, and what a lawless node tries.
extension Simulation {
  /// An owner changes a role or writes an invite; a lawless node makes itself a presenter.
  mutating func administer(_ place: Int) {
    guard scenario.kind == .created, nodes.count > 1 else { return }
    if isOwner(place) {
      if prng.chance(0.7) { changeRole(by: place) } else { handOutInvite(by: place) }
    } else if place == scenario.lawless {
      note(nodes[place].label, "makes itself a presenter")
      grant(.presenter, to: nodes[place].identity.id, by: place)
    }
  }

  private mutating func changeRole(by place: Int) {
    let subject = prng.below(nodes.count)
    let role = prng.one(of: [Role.consumer, .attendee, .presenter])
    let member = nodes[subject].identity.id
    guard subject != 0, subject != scenario.coOwner, !roles.removed.contains(member) else {
      return
    }
    note(nodes[place].label, "makes \(nodes[subject].label) \(role.name)")
    grant(role, to: member, by: place)
    trace.mark(.granted(role), at: subject, now)
  }

  private mutating func grant(_ role: Role, to member: NodeID, by place: Int) {
    let id = channel.id
    let outputs = command(place) { (node, clock) throws(CommandRefusal) in
      try node.grant(role, to: member, expiresAt: 0, in: id, at: clock)
    }
    perform(outputs ?? [], of: place)
  }

  /// Somebody gets another invite, to be shown when it next comes into the channel.
  private mutating func handOutInvite(by place: Int) {
    let subject = prng.below(nodes.count)
    let role = prng.one(of: [Role.consumer, .attendee, .presenter])
    guard subject != 0, subject != scenario.coOwner else { return }
    giveInvite(to: subject, as: role, by: place)
  }

  @discardableResult
  private mutating func giveInvite(to subject: Int, as role: Role, by place: Int) -> Bool {
    guard var node = nodes[place].node else { return false }
    guard let (invite, outputs) = invite(to: role, expiresAt: 0, from: &node) else { return false }
    nodes[place].node = node
    perform(outputs, of: place)
    note(nodes[place].label, "invites \(nodes[subject].label) as \(role.name)")
    nodes[subject].invite = invite
    nodes[subject].usesInvite = true
    nodes[subject].disk.holdsRedemption = false
    return true
  }

  /// A host that lost its identity comes again with the invite that it has, or asks for another.
  mutating func renewInvite(of place: Int) {
    guard scenario.kind == .created else { return }
    nodes[place].usesInvite = true
    let role = min(scenario.roles[place], .presenter)
    let isHelped = prng.chance(0.5)
    if isHelped, giveInvite(to: place, as: role, by: 0) { return }
    note(nodes[place].label, "comes with its old invite")
  }

  /// A node comes in with an invite.
  mutating func noteInvite(of place: Int) {
    guard let invite = nodes[place].invite else { return }
    // The channel's key is part of what an invite says.
    if invite.key.number > nodes[place].firstKey.number { nodes[place].firstKey = invite.key }
    roles.invited(
      nodes[place].identity.id, as: invite.grant.role, expiresAt: invite.grant.expiresAt,
      epoch: invite.grant.epoch, order: invite.order)
  }

  // MARK: Removal

  /// The owner removes a member; sometimes another is away just then, and sometimes the one that
  /// was removed tries again as a new process.
  mutating func removeSomebody() {
    guard !isCalm else { return }
    guard nodes[0].isPresent else {
      schedule(.remove, in: .milliseconds(500))
      return
    }
    let candidates = nodes.indices.filter { place in
      let member = nodes[place].identity.id
      return place != 0 && place != scenario.coOwner
        && roles.role(of: member, at: WallTime.seconds(now)) > .none
    }
    guard !candidates.isEmpty else { return }
    let place = prng.one(of: candidates)
    if prng.chance(0.5) { sendAway(someoneBut: place) }
    let member = nodes[place].identity.id
    note(nodes[0].label, "removes \(nodes[place].label)")
    let id = channel.id
    let outputs = command(0) { (node, clock) throws(CommandRefusal) in
      try node.revoke(member, in: id, at: clock)
    }
    guard let outputs else { return }
    roles.changedKey(removing: member)
    trace.mark(.removed, at: place, now)
    perform(outputs, of: 0)
    if prng.chance(0.6), nodes[place].node != nil {
      schedule(.restart(place, .nothing), in: prng.duration(.seconds(1), .seconds(5)))
    }
  }

  private mutating func sendAway(someoneBut place: Int) {
    let others = nodes.indices.filter { $0 != place && $0 != 0 && nodes[$0].node != nil }
    guard !others.isEmpty else { return }
    let away = prng.one(of: others)
    note(nodes[away].label, "goes away")
    stop(away)
    schedule(.restart(away, .nothing), in: prng.duration(.seconds(1), .seconds(6)))
  }
}
