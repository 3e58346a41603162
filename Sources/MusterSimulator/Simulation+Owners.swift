import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterWire

/// The actions of owners in created channels, and of a patched node that ignores its own role.
extension Simulation {
  /// As an owner, changes a role or creates an invite; as the lawless node, tries to make itself a
  /// presenter; otherwise does nothing.
  mutating func administer(_ index: Int) {
    guard scenario.kind == .created, nodes.count > 1 else { return }
    if isOwner(index) {
      if prng.chance(0.7) { changeRole(by: index) } else { handOutInvite(by: index) }
    } else if index == scenario.lawless {
      note(nodes[index].label, "makes itself a presenter")
      grant(.presenter, to: nodes[index].identity.id, by: index)
    }
  }

  private mutating func changeRole(by index: Int) {
    let subject = prng.below(nodes.count)
    let role = prng.one(of: [Role.consumer, .attendee, .presenter])
    let member = nodes[subject].identity.id
    guard subject != 0, subject != scenario.coOwner,
      !roles.removed.contains(where: { $0.member == member })
    else {
      return
    }
    note(nodes[index].label, "makes \(nodes[subject].label) \(role.name)")
    grant(role, to: member, by: index)
    trace.mark(.granted(role), at: subject, now)
  }

  private mutating func grant(_ role: Role, to member: NodeID, by index: Int) {
    let id = channel.id
    let outputs = command(index) { (node, clock) throws(CommandRefusal) in
      try node.grant(role, to: member, expiresAt: 0, in: id, at: clock)
    }
    perform(outputs ?? [], of: index)
  }

  /// Gives a random node another invite, to be redeemed when the node next enters the channel.
  private mutating func handOutInvite(by index: Int) {
    let subject = prng.below(nodes.count)
    let role = prng.one(of: [Role.consumer, .attendee, .presenter])
    guard subject != 0, subject != scenario.coOwner else { return }
    giveInvite(to: subject, as: role, by: index)
  }

  @discardableResult
  private mutating func giveInvite(to subject: Int, as role: Role, by index: Int) -> Bool {
    let id = channel.id
    var invite: SimulatedNode.HeldInvite?
    let outputs = nodes[index].call(at: now) { node, clock in
      let made = Self.invite(to: role, expiresAt: 0, uses: 0, from: &node, in: id, at: clock)
      invite = made?.invite
      return made?.outputs ?? []
    }
    guard let invite else { return false }
    perform(outputs, of: index)
    note(nodes[index].label, "invites \(nodes[subject].label) as \(role.name)")
    nodes[subject].invite = invite
    nodes[subject].usesInvite = true
    nodes[subject].disk.holdsRedemption = false
    return true
  }

  /// Lets a host with a new identity reuse its invite or receive another.
  mutating func renewInvite(of index: Int) {
    guard scenario.kind == .created else { return }
    nodes[index].usesInvite = true
    let role = min(scenario.roles[index], .presenter)
    let isHelped = prng.chance(0.5)
    if isHelped, giveInvite(to: index, as: role, by: 0) { return }
    note(nodes[index].label, "comes with its old invite")
  }

  /// Reports to the role checker that a node joins with an invite.
  mutating func noteInvite(of index: Int) {
    guard let invite = nodes[index].invite else { return }
    // An invite also contains the channel key that was current when it was made.
    if invite.key.number > nodes[index].firstKey.number { nodes[index].firstKey = invite.key }
    roles.invited(
      nodes[index].identity.id, as: invite.grant.role, expiresAt: invite.grant.expiresAt,
      epoch: invite.grant.terms?.epoch ?? 0, order: invite.order)
  }

  // MARK: Moderation

  /// Mutes a participant of the call for everyone, or removes it from the call, if the node may.
  mutating func moderate(_ index: Int) {
    let id = channel.id
    guard scenario.kind == .created, let process = nodes[index].process,
      let call = process.node.call(in: id)
    else { return }
    let lower = call.participants.filter { process.node.mayModerate($0, in: id) }
    let member = prng.one(of: lower.isEmpty ? call.participants : lower)
    let media: OwnMedia? = prng.chance(0.6) ? prng.one(of: [.audio, .video, .share]) : nil
    note(nodes[index].label, "\(media == nil ? "removes" : "mutes") \(label(member)) in the call")
    let outputs = command(index) { (node, clock) throws(CommandRefusal) in
      guard let media else { return try node.removeFromCall(member, in: id, at: clock) }
      return try node.mute(media, of: member, in: id, at: clock)
    }
    guard let outputs else { return }
    totals.moderations += 1
    if media == nil { calls.removed(member, from: call.info.id) }
    perform(outputs, of: index)
  }

  // MARK: Removal

  /// Removes a member as the owner. Sometimes another member is offline at that time, and sometimes
  /// the removed member tries to rejoin as a new process.
  mutating func removeSomebody() {
    guard !isHealed else { return }
    guard nodes[0].isPresent else {
      schedule(.remove, in: .milliseconds(500))
      return
    }
    let candidates = nodes.indices.filter { index in
      let member = nodes[index].identity.id
      return index != 0 && index != scenario.coOwner
        && roles.role(of: member, at: WallTime.seconds(now)) > .none
    }
    guard !candidates.isEmpty else { return }
    let index = prng.one(of: candidates)
    if prng.chance(0.5) { sendAway(someoneBut: index) }
    let member = nodes[index].identity.id
    note(nodes[0].label, "removes \(nodes[index].label)")
    let id = channel.id
    let outputs = command(0) { (node, clock) throws(CommandRefusal) in
      try node.revoke(member, in: id, at: clock)
    }
    guard let outputs else { return }
    trace.mark(.removed, at: index, now)
    perform(outputs, of: 0)
    if prng.chance(0.6), nodes[index].process != nil {
      schedule(.restart(index, .nothing), in: prng.duration(.seconds(1), .seconds(5)))
    }
  }

  private mutating func sendAway(someoneBut index: Int) {
    let others = nodes.indices.filter { $0 != index && $0 != 0 && nodes[$0].process != nil }
    guard !others.isEmpty else { return }
    let away = prng.one(of: others)
    note(nodes[away].label, "goes away")
    stop(away)
    schedule(.restart(away, .nothing), in: prng.duration(.seconds(1), .seconds(6)))
  }
}
