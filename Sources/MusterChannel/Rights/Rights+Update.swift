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
      table[author] = result(of: redemption, in: entry)
    }
    checked = table
  }

  /// The result of verifying the redemption in `entry`, which may be known.
  private func result(of redemption: Redemption, in entry: SignedEntry) -> CheckedRedemption {
    let author = entry.entry.author
    if let known = checked[author], known.id == entry.id { return known }
    let grant = Invites.verified(redemption, by: author, in: channel)
    return CheckedRedemption(id: entry.id, signed: grant.flatMap(SignedGrant.init))
  }

  /// Groups all grants, invites and removals that count now, or may count later, by subject.
  mutating func collectGrants(_ entries: [SignedEntry], owner: NodeID) {
    let all = entries.compactMap(SignedGrant.init)
    let grants = all.filter { !$0.grant.isBearer }
    let invites = checked.compactMap { redeemer, redemption in
      redemption.signed.map { (redeemer: redeemer, signed: $0) }
    }
    owners = grants.filter { $0.author == owner && $0.grant.role == .owner }.map(\.grant.subject)
    owners += invites.filter { $0.signed.author == owner && $0.signed.grant.role == .owner }
      .map(\.redeemer)
    owners.sort()
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
      let confirming = held.confirmedInvite
      if let confirming { use(of: confirming) { $0.confirmed.append(member) } }
      guard let invite = held.invite?.grant, invite.subject != confirming else { continue }
      use(of: invite.subject) { $0.append(member, by: invite) }
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
    for member in memberGrants.keys { decideOnUse(by: member) }
  }

  private mutating func decideOnUse(by member: NodeID) {
    guard let signed = memberGrants[member]?.invite else { return }
    let refusal = uses[signed.grant.subject]?.refusal(of: member, with: signed)
    _ = memberGrants.update(member) { $0.inviteRefusal = refusal }
  }

  /// Whether a grant may give a role: the channel's owner signed it, or a member with the owner
  /// role, who grants lower ones.
  private func counts(_ signed: SignedGrant) -> Bool {
    if signed.author == owner { return true }
    guard signed.grant.role < .owner else { return false }
    let position = owners.partitionIndex { $0 >= signed.author }
    return position < owners.count && owners[position] == signed.author
  }
}

/// A holder of an invite for many can make any number of redemptions. Each concerns its own key and
/// the one whose use it takes, so that the rights follow without being derived anew.
extension Rights {
  /// Follows the redemptions of these keys, which have come or gone. Returns the keys whose rights
  /// have changed; nil if those of others may have, so that all has to be derived.
  mutating func follow(_ redeemers: [NodeID], in document: Document) -> [NodeID]? {
    var changed: [NodeID] = []
    for key in redeemers {
      let entry = document.newest(.redemption, of: key)
      let (former, now) = (checked[key], entry.flatMap(result))
      guard former?.id != now?.id else { continue }
      // The grants and invites that an owner has signed count for others.
      let isOfOwner = [former?.signed, now?.signed].contains { $0?.grant.role == .owner }
      guard !isOfOwner else { return nil }
      checked[key] = now
      changed += [key] + takeInvite(from: key)
      if let signed = now?.signed, counts(signed) { changed += give(signed, to: key) }
    }
    for key in changed {
      decideOnUse(by: key)
      admissions[key] = admission(of: key)
    }
    return changed
  }

  private func result(of entry: SignedEntry) -> CheckedRedemption? {
    guard case .redemption(let redemption) = entry.entry.body else { return nil }
    return result(of: redemption, in: entry)
  }

  /// Takes the invite that a key has redeemed from it; returns the keys that may use it instead.
  private mutating func takeInvite(from key: NodeID) -> [NodeID] {
    guard let held = memberGrants[key], let invite = held.invite?.grant.subject else { return [] }
    _ = memberGrants.update(key) { ($0.invite, $0.inviteRefusal) = (nil, nil) }
    if memberGrants[key]?.isEmpty ?? false { memberGrants[key] = nil }
    guard invite != held.confirmedInvite else { return [] }
    let next = uses.update(invite) { $0.remove(key) }
    if uses[invite]?.isEmpty ?? false { uses[invite] = nil }
    return next ?? []
  }

  /// Gives a key the invite that it has redeemed; returns the keys that may no longer use it.
  private mutating func give(_ signed: SignedGrant, to key: NodeID) -> [NodeID] {
    let invite = signed.grant.subject
    memberGrants[key, default: MemberGrants()].invite = signed
    guard invite != memberGrants[key]?.confirmedInvite else { return [] }
    if uses.index(of: invite) == nil {
      let removal = chain.last { $0.change.removed.contains(invite) }?.entry
      use(of: invite) { $0.removal = removal }
    }
    return uses.update(invite) { $0.insert(key, by: signed.grant) } ?? []
  }

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
