import MusterBase
import MusterWire

/// The derivation of the grants of each key from the entries of a document.
extension Rights {
  /// The key changes of `owner`, by number and age.
  static func changes(
    _ entries: [SignedEntry], of owner: NodeID
  ) -> [(change: EpochChange, entry: SignedEntry)] {
    entries.compactMap { entry -> (change: EpochChange, entry: SignedEntry)? in
      guard entry.entry.author == owner, case .epoch(let change) = entry.entry.body else {
        return nil
      }
      return (change, entry)
    }
    .sorted {
      $0.change.number != $1.change.number
        ? $0.change.number < $1.change.number : $0.entry < $1.entry
    }
  }

  /// The `changes` that are in effect, numbered from 1 without a gap; `grants` are the owner's.
  ///
  /// A change takes effect once the new grants for its `kept` members are known: without these
  /// grants, the members would have no role.
  static func chain(
    _ changes: [(change: EpochChange, entry: SignedEntry)], grants: [SignedEntry]
  ) -> [(change: EpochChange, entry: SignedEntry)] {
    let granted = grants.compactMap { SignedGrant($0)?.grant.subject.key.prefix }.sorted()
    var chain: [(change: EpochChange, entry: SignedEntry)] = []
    for candidate in changes where chain.count < Limits.epochs {
      let last = chain.last
      guard candidate.change.number == UInt32(chain.count) + 1,
        candidate.change.previous == last?.entry.id ?? .zero,
        candidate.change.kept.allSatisfy(granted.containsInOrder)
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
  func result(of redemption: Redemption, in entry: SignedEntry) -> CheckedRedemption {
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

  /// Collects the uses of each invite. It gives nothing to other keys once an owner has confirmed
  /// as many as it permits.
  private mutating func countUses(bearers: [SignedGrant]) {
    uses = PeerTable()
    for signed in bearers {
      let known = uses[signed.grant.subject]?.published
      guard known.map({ $0.entry < signed.entry }) ?? true else { continue }
      uses[signed.grant.subject] = InviteUse(policy: policy, published: signed)
    }
    for (member, held) in memberGrants {
      if let invite = held.confirmedInvite { use(of: invite) { $0.confirm(member) } }
      guard let invite = held.unconfirmedInvite else { continue }
      use(of: invite.subject) { $0.insert(member, by: invite) }
    }
    for (change, entry) in chain {
      for invite in change.removed where uses.index(of: invite) != nil {
        use(of: invite) { $0.removal = entry }
        for member in uses[invite]?.confirmed ?? [] {
          _ = memberGrants.update(member) { $0.shutOut(by: entry) }
        }
      }
    }
    for (invite, use) in uses {
      for member in use.pending {
        _ = memberGrants.update(member) { held in
          held.inviteRefusal = held.invite.flatMap { use.refusal(of: member, with: $0) }
        }
      }
      guard use.isRevoked else { continue }
      for member in use.confirmed where memberGrants[member]?.invite?.grant.subject == invite {
        _ = memberGrants.update(member) { $0.inviteRefusal = .removed }
      }
    }
  }

  /// Whether a grant may give a role: the channel's owner signed it, or a member with the owner
  /// role, who grants lower ones.
  func counts(_ signed: SignedGrant) -> Bool {
    if signed.author == owner { return true }
    return signed.grant.role < .owner && owners.containsInOrder(signed.author)
  }

  /// Changes what is known of an invite in place.
  private mutating func use(of invite: NodeID, _ change: (inout InviteUse) -> Void) {
    if uses.index(of: invite) == nil { uses[invite] = InviteUse(policy: policy) }
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
