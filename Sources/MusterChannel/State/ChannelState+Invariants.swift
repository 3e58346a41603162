import MusterBase
import MusterCrypto
import MusterWire

extension ChannelState {
  /// The inputs of the derived state. While they are unchanged, the state need not be compared with
  /// its derivation again, which costs as much as the derivation itself.
  package struct Basis: Equatable, Sendable {
    fileprivate let document: UInt64
    fileprivate let recomputations: UInt64
    /// The wall time in whole seconds since 1970: roles expire at full seconds.
    fileprivate let seconds: UInt64
    fileprivate let neighbours: [UInt64]
    fileprivate let own: Presence
    fileprivate let ownEntry: EntryID?
    fileprivate let pending: Int
    fileprivate let initialSyncDeadline: Instant?
    fileprivate let isPresenceDue: Bool
    fileprivate let isDerived: Bool
  }

  private var basis: Basis {
    Basis(
      document: gossip.document.revision, recomputations: recomputations, seconds: wallSeconds,
      neighbours: neighbours.map(\.value.bootID), own: ownPresence, ownEntry: ownEntry?.id,
      pending: pending.count, initialSyncDeadline: initialSyncDeadline,
      isPresenceDue: presenceDueAt != nil,
      isDerived: expiryAt.map { $0 > lastInputAt } ?? true)
  }

  /// The violated invariants of this state and its parts (for tests); empty if all hold.
  package func checkInvariants() -> [String] {
    var basis: Basis?
    return checkInvariants(since: &basis)
  }

  /// The violated invariants; the derived state is checked only if its inputs differ from `last`,
  /// the inputs of the previous check.
  package func checkInvariants(since last: inout Basis?) -> [String] {
    var faults = gossip.checkInvariants()
    faults += detector.checkInvariants()
    faults += messages.checkInvariants()
    faults += checkBounds()
    faults += checkNeighbours()
    let basis = self.basis
    if basis.isDerived, ownEntry != nil, !changes.isEmpty {
      faults.append("derived state is not recomputed")
    }
    guard basis != last else { return faults }
    last = basis
    return faults + checkDerived()
  }

  private func checkDerived() -> [String] {
    let faults = gossip.document.checkInvariants() + rights.checkInvariants()
    // The derived state is not valid before the first input, nor between a step of the wall clock
    // and the next input.
    guard ownEntry != nil, expiryAt.map({ $0 > lastInputAt }) ?? true else { return faults }
    return faults + checkAdmissions() + checkRoster() + checkCall() + checkOwnEntries()
  }

  /// Checks that the document holds no entry whose author has no right to it.
  private func checkAdmissions() -> [String] {
    let isHeld = entries.allSatisfy { rights.holds($0.entry, in: identity.id) }
    return (isHeld ? [] : ["an entry without the right to it"])
      + (rights.agrees(with: gossip.document) ? [] : ["rights that do not follow"])
  }

  private func checkBounds() -> [String] {
    var faults: [String] = []
    if neighbours.count > Limits.peersPerChannel { faults.append("too many neighbours") }
    if linkEnds.count > Limits.peersPerChannel { faults.append("too many ended links") }
    if pending.count > PendingCommit.limit { faults.append("too many commits") }
    if awaitingGrant.count > Limits.messagesPerAuthor {
      faults.append("too many messages that await a grant")
    }
    if finalEntries.count > 4 { faults.append("too many last entries") }
    return faults
  }

  /// Checks that the failure detector, the gossip and this state have the same neighbours.
  private func checkNeighbours() -> [String] {
    var faults: [String] = []
    if detector.peers.keys != neighbours.keys { faults.append("other neighbours are watched") }
    if gossip.neighbours.keys != neighbours.keys { faults.append("gossip has other neighbours") }
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

  /// Checks that the call follows from the document and the roster, and that all its participants
  /// have the right to join a call.
  private func checkCall() -> [String] {
    var faults: [String] = []
    let isHeldBack = call == nil && ownPresence.call == nil && initialSyncDeadline != nil
    if !isHeldBack, call != activeCall { faults.append("a call other than the ledger's") }
    if let mine = ownPresence.call, mine.id != call?.info.id {
      faults.append("in a call that is not on")
    }
    for participant in call?.participants ?? [] {
      let role = rights.role(of: participant, at: wallSeconds)
      if !Capability.joinCall.isAllowed(to: role, in: settings) {
        faults.append("a participant without the right to be in the call")
      }
      if let id = call?.info.id, remover(of: participant, from: id) != nil {
        faults.append("a participant that was removed from the call")
      }
    }
    return faults
  }

  /// Checks this node's own entries: its newest presence is in the document and matches its state
  /// unless an update is pending, its Lamport counter is within the limit, and entries that wait
  /// for the disk are not in the document.
  private func checkOwnEntries() -> [String] {
    var faults: [String] = []
    guard let ownEntry, !gossip.document.quarantined.contains(identity.id) else { return [] }
    if let held = gossip.document.newest(.presence, of: identity.id), held != ownEntry {
      faults.append("another own presence in the document")
    }
    if isDisplaced(ownEntry), presenceDueAt == nil {
      faults.append("the document lacks the own presence")
    }
    if case .presence(let published) = ownEntry.entry.body, published != presenceToPublish,
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
