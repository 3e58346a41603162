import MusterBase
import MusterWire

/// A holder of an invite for many can make any number of redemptions, which the owner confirms.
/// Each concerns its own key and the one whose use it takes, so that the rights follow without
/// being derived anew.
extension Rights {
  /// Follows the redemptions of these keys and the grants for them, which have come or gone.
  /// Returns the keys whose rights have changed; nil if those of others may have, so that all must
  /// be derived.
  mutating func follow(_ keys: [NodeID], in document: Document) -> [NodeID]? {
    var changed: [NodeID] = []
    for key in keys {
      checked[key] = document.newest(.redemption, of: key).flatMap(result)
      let former = memberGrants[key] ?? MemberGrants()
      var now = grants(of: key, in: document)
      now.inviteRefusal = former.inviteRefusal
      guard now == former || !isOfMany(key, from: former, to: now) else { return nil }
      memberGrants[key] = now.isEmpty ? nil : now
      let others = moveUse(of: key, from: former, to: now)
      _ = decideOnUse(by: key)
      changed.append(key)
      changed += others.filter { decideOnUse(by: $0) }
    }
    for key in changed { admissions[key] = admission(of: key) }
    return changed
  }

  private func result(of entry: SignedEntry) -> CheckedRedemption? {
    guard case .redemption(let redemption) = entry.entry.body else { return nil }
    return result(of: redemption, in: entry)
  }

  /// What the entries say about a key, except why its invite gives it nothing.
  private func grants(of key: NodeID, in document: Document) -> MemberGrants {
    var held = MemberGrants()
    held.direct = document.grants(for: key).compactMap(SignedGrant.init)
      .filter { !$0.grant.isBearer && counts($0) }
      .sorted { $1.entry < $0.entry }
    held.invite = checked[key]?.signed.flatMap { counts($0) ? $0 : nil }
    let names = [key, held.confirmedInvite]
    for (change, entry) in chain where change.removed.contains(where: names.contains) {
      held.shutOut(by: entry)
    }
    return held
  }

  /// Whether the grants for a key concern others: the grants and invites that it has signed as an
  /// owner, or a key change that waits for it.
  private func isOfMany(
    _ key: NodeID, from former: MemberGrants, to now: MemberGrants
  ) -> Bool {
    let byOwner = (now.direct + (now.invite.map { [$0] } ?? [])).filter { $0.author == owner }
    if owners.containsInOrder(key) || byOwner.contains(where: { $0.grant.role == .owner }) {
      return true
    }
    let isGranted = [former, now].map { held in held.direct.contains { $0.author == owner } }
    return isGranted[0] != isGranted[1] && kept.containsInOrder(key.key.prefix)
  }

  /// Moves a key to the invite by which it comes now; returns the others that may have got a use by
  /// that, or lost theirs.
  private mutating func moveUse(
    of key: NodeID, from former: MemberGrants, to now: MemberGrants
  ) -> [NodeID] {
    var others: [NodeID] = []
    if former.unconfirmedInvite != now.unconfirmedInvite, let invite = former.unconfirmedInvite {
      others += change(invite.subject) { $0.remove(key) }
    }
    if former.confirmedInvite != now.confirmedInvite {
      if let invite = former.confirmedInvite { others += change(invite) { $0.unconfirm(key) } }
      if let invite = now.confirmedInvite { others += change(invite) { $0.confirm(key) } }
    }
    if former.unconfirmedInvite != now.unconfirmedInvite, let invite = now.unconfirmedInvite {
      others += change(invite.subject) { $0.insert(key, by: invite) }
    }
    return others
  }

  /// Changes the use of an invite by one key; returns the others that this may concern.
  private mutating func change(
    _ invite: NodeID, _ change: (inout InviteUse) -> Void
  ) -> [NodeID] {
    if uses.index(of: invite) == nil {
      var use = InviteUse(policy: policy)
      use.removal = chain.last { $0.change.removed.contains(invite) }?.entry
      uses[invite] = use
    }
    let count = uses[invite]?.confirmed.count ?? 0
    _ = uses.update(invite) { change(&$0) }
    let others = uses[invite]?.concerned(since: count) ?? []
    if uses[invite]?.isEmpty ?? false { uses[invite] = nil }
    return others
  }

  /// Decides whether a key has a use of the invite that it has redeemed; returns whether that has
  /// changed.
  private mutating func decideOnUse(by member: NodeID) -> Bool {
    guard let held = memberGrants[member] else { return false }
    let refusal = held.invite.flatMap { uses[$0.grant.subject]?.refusal(of: member, with: $0) }
    guard refusal != held.inviteRefusal else { return false }
    _ = memberGrants.update(member) { $0.inviteRefusal = refusal }
    return true
  }
}
