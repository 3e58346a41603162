import MusterBase
import MusterWire

/// The derivation of the grants of each key from the entries of a document.
extension Rights {
  /// The owner's key changes that are in effect, numbered from 1 without a gap.
  ///
  /// A change takes effect once the new grants for its `kept` members are known: without these
  /// grants, the members would have no role.
  static func chain(
    _ entries: [SignedEntry], of owner: NodeID, grants: [SignedEntry]
  ) -> [(change: EpochChange, entry: SignedEntry)] {
    var candidates: [(change: EpochChange, entry: SignedEntry)] = []
    for entry in entries where entry.entry.author == owner {
      if case .epoch(let change) = entry.entry.body { candidates.append((change, entry)) }
    }
    candidates.sort {
      $0.change.number != $1.change.number
        ? $0.change.number < $1.change.number : $0.entry < $1.entry
    }
    var granted: [UInt64] = []
    for entry in grants where entry.entry.author == owner {
      if case .grant(let grant) = entry.entry.body { granted.append(grant.subject.key.prefix) }
    }
    granted.sort()
    func isGranted(_ member: UInt64) -> Bool {
      let index = granted.partitionIndex { $0 >= member }
      return index < granted.count && granted[index] == member
    }
    var chain: [(change: EpochChange, entry: SignedEntry)] = []
    for candidate in candidates where chain.count < Limits.epochs {
      let last = chain.last
      guard candidate.change.number == UInt32(chain.count) + 1,
        candidate.change.previous == last?.entry.id ?? .zero,
        candidate.change.kept.allSatisfy(isGranted)
      else { continue }
      chain.append(candidate)
    }
    return chain
  }

  /// Verifies new redemptions, and drops the results for redemptions that are no longer in the
  /// document.
  mutating func checkRedemptions(_ entries: [SignedEntry]) {
    var table = PeerTable<NodeID, CheckedRedemption>()
    for entry in entries {
      guard case .redemption(let redemption) = entry.entry.body else { continue }
      let author = entry.entry.author
      if let known = checked[author], known.id == entry.id {
        table[author] = known
        continue
      }
      let grant = Invites.verified(redemption, by: author, in: channel)
      table[author] = CheckedRedemption(id: entry.id, signed: grant.flatMap(SignedGrant.init))
    }
    checked = table
  }

  /// Groups all grants, invites and removals that count now, or may count later, by subject.
  mutating func collectGrants(_ entries: [SignedEntry], owner: NodeID) {
    let all = entries.compactMap(SignedGrant.init)
    let grants = all.filter { !$0.grant.isBearer }
    let invites = checked.compactMap { redeemer, redemption in
      redemption.signed.map { (redeemer: redeemer, signed: $0) }
    }
    // Members to whom the channel's owner has granted the owner role, even if the grant has
    // expired.
    var owners: [NodeID] = []
    owners += grants.filter { $0.author == owner && $0.grant.role == .owner }.map(\.grant.subject)
    owners += invites.filter { $0.signed.author == owner && $0.signed.grant.role == .owner }
      .map(\.redeemer)

    func counts(_ signed: SignedGrant) -> Bool {
      signed.author == owner || (signed.grant.role < .owner && owners.contains(signed.author))
    }
    memberGrants = PeerTable()
    for signed in grants.sorted(by: { $1.entry < $0.entry }) where counts(signed) {
      memberGrants[signed.grant.subject, default: MemberGrants()].direct.append(signed)
    }
    for (redeemer, signed) in invites where counts(signed) {
      memberGrants[redeemer, default: MemberGrants()].invite = signed
    }
    for (change, entry) in chain {
      for member in change.removed {
        memberGrants[member, default: MemberGrants()].shutOut(by: entry)
      }
    }
    countUses(bearers: all.filter { $0.grant.isBearer && counts($0) })
  }

  /// Collects the uses of each invite: keys that an owner has confirmed come first, others in an
  /// order that they cannot choose. Beyond the limit, an invite gives nothing.
  private mutating func countUses(bearers: [SignedGrant]) {
    uses = PeerTable()
    for signed in bearers {
      let known = uses[signed.grant.subject]?.published
      guard known.map({ $0.entry < signed.entry }) ?? true else { continue }
      uses[signed.grant.subject] = InviteUse(isLimited: policy.limitsUses, published: signed)
    }
    for (member, held) in memberGrants {
      let confirming = held.direct.first { $0.grant.invite != nil }?.grant.invite
      if let confirming { use(of: confirming) { $0.confirmed.append(member) } }
      guard let invite = held.invite?.grant.subject, invite != confirming else { continue }
      use(of: invite) { $0.pending.append(member) }
    }
    for invite in uses.keys { use(of: invite) { $0.sortPending() } }
    for (change, entry) in chain {
      for invite in change.removed where uses.index(of: invite) != nil {
        use(of: invite) { $0.removal = entry }
        for member in uses[invite]?.confirmed ?? [] {
          _ = memberGrants.update(member) { $0.shutOut(by: entry) }
        }
      }
    }
    for member in memberGrants.keys {
      guard let signed = memberGrants[member]?.invite else { continue }
      let refusal = uses[signed.grant.subject]?.refusal(of: member, with: signed)
      _ = memberGrants.update(member) { $0.inviteRefusal = refusal }
    }
  }
}

extension Rights {
  /// Changes what is known of an invite in place.
  private mutating func use(of invite: NodeID, _ change: (inout InviteUse) -> Void) {
    if uses.index(of: invite) == nil { uses[invite] = InviteUse(isLimited: policy.limitsUses) }
    _ = uses.update(invite) { change(&$0) }
  }
}

extension SignedGrant {
  /// Reads the grant in an entry; nil for other entries.
  init?(_ entry: SignedEntry) {
    guard case .grant(let grant) = entry.entry.body else { return nil }
    self.init(entry: entry, grant: grant)
  }

  var author: NodeID { entry.entry.author }
}

extension PeerTable {
  /// The value under `key`, or `initial` if the key is absent.
  fileprivate subscript(
    key: Key, default initial: @autoclosure () -> Value
  ) -> Value {
    get { self[key] ?? initial() }
    set { self[key] = newValue }
  }
}
