import MusterBase
import MusterCrypto
import MusterWire

extension ChannelState {
  /// The violated invariants of this state and its parts (for tests); empty if all hold. The check
  /// costs as much as recomputing everything.
  package func checkInvariants() -> [String] {
    var faults = gossip.checkInvariants() + rights.checkInvariants()
    faults += detector.checkInvariants() + messages.checkInvariants()
    faults += checkBounds() + checkNeighbours()
    // Nothing is derived before the first input, and a step of the wall clock takes effect only at
    // the next input.
    guard ownEntry != nil, expiryAt.map({ $0 > wallNow }) ?? true else { return faults }
    if !changes.isEmpty { faults.append("consequences are not worked out") }
    return faults + checkRoster() + checkCall() + checkOwnEntries()
  }

  private func checkBounds() -> [String] {
    var faults: [String] = []
    if neighbours.count > Limits.peersPerChannel { faults.append("too many neighbours") }
    if linkEnds.count > Limits.peersPerChannel { faults.append("too many ended links") }
    if pending.count > PendingCommit.limit { faults.append("too many commits") }
    if withheld.count > Limits.messagesPerAuthor { faults.append("too many withheld messages") }
    if lastWords.count > 4 { faults.append("too many last entries") }
    return faults
  }

  /// Checks that failure detector, gossip and this state have the same neighbours.
  private func checkNeighbours() -> [String] {
    var faults: [String] = []
    if detector.peers.keys != neighbours.keys { faults.append("other neighbours are watched") }
    if gossip.neighbours.keys != neighbours.keys { faults.append("others get news") }
    return faults
  }

  /// Checks that the roster holds the reachable members as their newest presences describe them.
  private func checkRoster() -> [String] {
    let present = presentMembers()
    if roster.keys != present.map(\.id) {
      return ["a roster of \(roster.count) members, of whom \(present.count) can be reached"]
    }
    return roster.map(\.value) == present ? [] : ["an outdated member in the roster"]
  }

  /// Checks that the call follows from document and roster, and that its participants may join it.
  private func checkCall() -> [String] {
    var faults: [String] = []
    let isHeldBack = call == nil && own.call == nil && catchesUpUntil != nil
    if !isHeldBack, call != activeCall { faults.append("a call other than the ledger's") }
    if let mine = own.call, mine.id != call?.info.id { faults.append("in a call that is not on") }
    for participant in call?.participants ?? [] {
      let role = rights.role(of: participant, at: wallSeconds)
      if !Capability.joinCall.isAllowed(to: role, in: settings) {
        faults.append("a participant without the right to be in the call")
      }
    }
    return faults
  }

  /// Checks that the document has this node's last presence, which is current or about to be
  /// replaced.
  private func checkOwnEntries() -> [String] {
    var faults: [String] = []
    guard let ownEntry, !gossip.document.quarantined.contains(identity.id) else { return [] }
    if gossip.document.newest(.presence, of: identity.id) != ownEntry {
      faults.append("another own presence in the document")
    }
    if case .presence(let published) = ownEntry.entry.body, published != ownPresence,
      presenceDueAt == nil, !pending.contains(where: { $0.subject == .callEnd })
    {
      faults.append("an outdated own presence")
    }
    if signedLamport > Entry.lamportLimit { faults.append("a Lamport counter beyond its limit") }
    if pending.flatMap(\.entries).contains(where: { gossip.document.contains($0.id) }) {
      faults.append("an entry is in the document before it is written")
    }
    return faults
  }
}
