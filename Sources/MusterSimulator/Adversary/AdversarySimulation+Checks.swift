import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterWire

/// Checks of the promise to members in good standing.
extension AdversarySimulation {
  /// The time by which the members have met before the attack.
  private static let metBy = Instant.zero + .seconds(4)

  mutating func check() {
    schedule(.check, in: Self.checkInterval)
    guard now >= Self.metBy else { return }
    for one in nodes.indices {
      guard let process = nodes[one].process else { continue }
      checkUses(at: one)
      let isInCall = process.node.isInCall(channel.id)
      let participants = isInCall ? process.node.call(in: channel.id)?.participants : nil
      for other in nodes.indices where other != one {
        let member = process.node.member(nodes[other].identity.id, of: channel.id)
        observed(.sees(one, other), isKept: member?.role == scenario.roles[other])
        observed(
          .meets(one, other),
          isKept: participants?.contains(nodes[other].identity.id) ?? false)
      }
    }
    if let fault = promises.unread(at: now) { violated("promise", fault) }
  }

  /// Checks that no more keys of the adversary are confirmed than its invite permits, and that no
  /// others have a role by it then.
  private mutating func checkUses(at index: Int) {
    guard scenario.uses > 0, let process = nodes[index].process,
      let invites = process.node.rights(in: channel.id)?.invites(at: 0)
    else { return }
    for invite in invites {
      let (confirmed, others) = (invite.confirmed.count, invite.provisional.count)
      guard confirmed > scenario.uses || confirmed == scenario.uses && others > 0 else { continue }
      violated(
        "access", "\(nodes[index].label) knows \(confirmed) keys and \(others) more by one invite")
    }
  }

  /// Checks that a member moved to another call finds one there that may lead it.
  mutating func checkMove(of index: Int) {
    guard let process = nodes[index].process, process.node.isInCall(channel.id),
      let call = process.node.call(in: channel.id)
    else { return }
    let isLed = nodes.indices.contains { other in
      other != index && scenario.roles[other] >= .presenter
        && call.participants.contains(nodes[other].identity.id)
    }
    if !isLed { violated("promise", "\(nodes[index].label) is moved to a call that nobody leads") }
  }

  private mutating func observed(_ promise: PromiseChecker.Promise, isKept: Bool) {
    guard let fault = promises.observed(promise, isKept: isKept, at: now) else { return }
    violated("promise", fault)
  }

  /// Checks the histories at the end of the run.
  mutating func end() {
    for index in nodes.indices {
      guard let process = nodes[index].process else { continue }
      let history = process.node.history(of: channel.id).map(\.text)
      // An owner that was away catches up with what was written before it met the others for longer
      // than the run: in a call, that takes an eighth of an uplink at most.
      let isReturned = index == 0 && !scenario.guests.isEmpty
      let since = isReturned ? Self.returnAt + .seconds(2) : .zero
      if let fault = promises.forgotten(in: history, of: index, since: since, at: now) {
        violated("promise", fault)
      }
    }
    isFinished = true
  }
}
