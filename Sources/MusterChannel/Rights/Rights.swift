import MusterBase
import MusterWire

/// The roles of a channel's members, derived from its document.
///
/// In an open channel every member is a presenter. In a created one, the owner named in the genesis
/// grants roles, directly or by invites, and members with the owner role grant lower roles. Nothing
/// else counts except the expiry of grants, so the same document gives the same roles on every node
/// at the same time.
///
/// Of the direct grants for a member, the newest holds, even after its expiry; a newer invite can
/// raise the role but not lower it.
///
/// A redeemed invite gives its role at once, so that people can meet without an owner, until a key
/// change removes somebody. The owner that made the invite confirms its uses by direct grants, as
/// many as the invite permits (`confirmations`); these outlast the key. Lamport counters could not
/// separate redemptions before a key change from later ones, since each author chooses the counters
/// of its entries.
public struct Rights: Sendable {
  let channel: ChannelID
  let owner: NodeID?
  /// The policies in the channel's genesis; the default policies in an open channel.
  public let settings: ChannelSettings
  /// The owner's key changes, numbered from 1 without a gap; at most `Limits.epochs`.
  var chain: [(change: EpochChange, entry: SignedEntry)] = []
  /// The prefixes of the ids of members that key changes wait for or have waited for; sorted.
  private(set) var kept: [UInt64] = []
  /// The grants, invites and removals of each key.
  var memberGrants = PeerTable<NodeID, MemberGrants>()
  /// The invites that are known, by their one-time keys.
  var uses = PeerTable<NodeID, InviteUse>()
  /// The admissions of all keys that have one; empty in an open channel.
  package internal(set) var admissions = PeerTable<NodeID, Admission>()
  /// A cache of verification results (at most `Limits.authors`), so that no redemption is verified
  /// twice.
  var checked = PeerTable<NodeID, CheckedRedemption>()
  /// The members to whom the channel's owner has granted the owner role, even if the grant has
  /// expired; sorted by id.
  var owners: [NodeID] = []
  var quarantined: [NodeID] = []
  /// The version of the document that the rights were derived from.
  private var basis: UInt64?
  let policy: ChannelPolicy

  /// Describes a created channel, or an open one if `genesis` is nil. The rights of a created
  /// channel are derived by `update`.
  public init(channel: ChannelID, genesis: SignedGenesis?) {
    self.init(channel: channel, genesis: genesis, policy: .standard)
  }

  package init(channel: ChannelID, genesis: SignedGenesis?, policy: ChannelPolicy) {
    self.channel = channel
    self.policy = policy
    owner = genesis?.genesis.owner
    settings = genesis?.genesis.settings ?? ChannelSettings()
    if let owner { admissions[owner] = Admission(principal: owner, role: .owner) }
  }

  /// Whether the channel has no owner; every holder of its key is then a presenter.
  public var isOpen: Bool { owner == nil }

  /// The owner's key changes in order, from epoch 1. Of two changes with the same predecessor, the
  /// first in document order counts.
  public var epochs: [(change: EpochChange, id: EntryID, bytes: [UInt8])] {
    chain.map { ($0.change, $0.entry.id, $0.entry.bytes) }
  }

  /// The epoch of the current channel key; 0 for the key at the channel's creation.
  public var currentEpoch: UInt32 { chain.last?.change.number ?? 0 }

  /// The epoch from which on invites count: that of the newest key change that removed anyone. Key
  /// changes for other reasons leave invites valid, and the roles of those who came by them.
  private(set) var inviteEpoch: UInt32 = 0

  /// The role of a member at a time in seconds since 1970; `none` for a node without a role.
  public func role(of member: NodeID, at wallSeconds: UInt64) -> Role {
    decision(of: member, at: wallSeconds).role
  }

  /// Whether a member's role at a time in seconds since 1970 gives it a capability.
  public func may(
    _ capability: Capability, _ member: NodeID, at wallSeconds: UInt64
  ) -> Bool {
    policy.permits(
      capability.isAllowed(to: role(of: member, at: wallSeconds), in: settings), false)
  }

  /// The reason why `member` is refused; nil if it has a role.
  public func refusal(of member: NodeID, at wallSeconds: UInt64) -> Refusal? {
    decision(of: member, at: wallSeconds).refusal
  }

  /// All members with a role, sorted by id, and the expiry of each role in seconds since 1970 (0:
  /// never); empty in open channels.
  public func members(
    at wallSeconds: UInt64
  ) -> [(member: NodeID, role: Role, expiresAt: UInt64)] {
    var known = memberGrants.keys
    if let owner, memberGrants.index(of: owner) == nil { known.append(owner) }
    return known.sorted().compactMap { member in
      let decision = decision(of: member, at: wallSeconds)
      return decision.role == .none ? nil : (member, decision.role, decision.expiresAt)
    }
  }

  /// The highest Lamport counter of a member's grants, invites included; 0 without grants.
  public func newestGrantLamport(for member: NodeID) -> UInt64 {
    guard let held = memberGrants[member] else { return 0 }
    let all = held.direct + (held.invite.map { [$0] } ?? [])
    return all.map(\.entry.entry.lamport).max() ?? 0
  }

  /// The time at which the role of `member` ends, in seconds since 1970; nil if it has no role or
  /// the role does not end. `isProvisional`: an owner may yet confirm it for longer.
  func end(
    of member: NodeID, at wallSeconds: UInt64
  ) -> (at: UInt64, isProvisional: Bool)? {
    let decision = decision(of: member, at: wallSeconds)
    guard decision.role > .none, decision.expiresAt != 0 else { return nil }
    return (decision.expiresAt, decision.viaInvite)
  }

  /// The time at which the next role expires, in seconds since 1970; nil if no role expires.
  public func nextExpiry(after wallSeconds: UInt64) -> UInt64? {
    memberGrants.compactMap { $0.value.nextExpiry(after: wallSeconds) }.min()
  }

  /// The time at which the next role of these members expires, in seconds since 1970; nil if none
  /// does.
  func nextExpiry(of members: [NodeID], after wallSeconds: UInt64) -> UInt64? {
    members.compactMap { memberGrants[$0]?.nextExpiry(after: wallSeconds) }.min()
  }

  /// The grants by which `owner` confirms the uses of its invites. Of an invite that more keys have
  /// redeemed than it permits, those of `met` get one, in that order, as far as it goes.
  public func confirmations(
    by owner: NodeID, meeting met: [NodeID], at wallSeconds: UInt64
  ) -> [Grant] {
    guard role(of: owner, at: wallSeconds) == .owner else { return [] }
    var ranks = PeerTable<NodeID, Int>()
    var numbers = PeerTable<NodeID, Int>()
    for member in met {
      guard let invite = confirmation(of: member, by: owner, at: wallSeconds)?.invite
      else { continue }
      let rank = numbers[invite] ?? 0
      ranks[member] = rank
      numbers[invite] = rank + 1
    }
    return memberGrants.compactMap { member, held in
      guard let signed = held.invite,
        uses[signed.grant.subject]?.isConfirmable(with: signed, rank: ranks[member]) ?? true
      else { return nil }
      return confirmation(of: member, by: owner, at: wallSeconds)
    }
  }

  /// The grant by which `owner` would confirm that a key has redeemed its invite; nil if it has
  /// nothing to confirm.
  private func confirmation(
    of member: NodeID, by owner: NodeID, at wallSeconds: UInt64
  ) -> Grant? {
    guard let invite = memberGrants[member]?.invite, invite.author == owner,
      let terms = invite.grant.terms
    else { return nil }
    let decision = decision(of: member, at: wallSeconds)
    guard decision.viaInvite, decision.role > .none else { return nil }
    return Grant(
      subject: member, role: decision.role, expiresAt: terms.roleExpiresAt,
      form: .byInvite(invite.grant.subject))
  }

  /// Whether an owner has granted a key a role, or taken one away.
  func knows(_ member: NodeID) -> Bool { memberGrants[member].map { !$0.direct.isEmpty } ?? false }

  /// The grants that decide on the role of a member, apart from the invite that it has redeemed:
  /// that of the channel's owner and the newest of an owner, and before them the grants to the
  /// owners who signed these or the invite.
  func grants(of member: NodeID, at wallSeconds: UInt64) -> [SignedEntry] {
    guard let held = memberGrants[member] else { return [] }
    let byOwner = held.direct.first { $0.author == owner }
    let newest = held.direct.first { $0.author == owner || isOwner($0.author, at: wallSeconds) }
    var found: [SignedEntry] = []
    for signed in [held.invite, newest].compactMap({ $0 }) {
      let appointment = memberGrants[signed.author]?.direct.first { $0.author == owner }
      if let entry = appointment?.entry, !found.contains(entry) { found.append(entry) }
    }
    for entry in [byOwner, newest].compactMap({ $0?.entry }) where !found.contains(entry) {
      found.append(entry)
    }
    return found
  }

  /// The one-time key of the invite by which a member came; nil if it came by none.
  public func invite(of member: NodeID) -> NodeID? {
    guard let held = memberGrants[member] else { return nil }
    return held.direct.first { $0.grant.invite != nil }?.grant.invite ?? held.invite?.grant.subject
  }

  /// The invites of which the document has a grant or a redemption, sorted by id.
  public func invites(at wallSeconds: UInt64) -> [InviteStatus] {
    uses.compactMap { id, use in
      guard let signed = use.published ?? use.pending.first.flatMap({ memberGrants[$0]?.invite }),
        let terms = signed.grant.terms
      else { return nil }
      let isCurrent = terms.epoch >= inviteEpoch && !use.isRevoked
      let isExpired = signed.grant.expiresAt != 0 && signed.grant.expiresAt <= wallSeconds
      let isLeft = terms.uses == 0 || use.confirmed.count + use.pending.count < Int(terms.uses)
      return InviteStatus(
        id: id, owner: signed.author, role: signed.grant.role, uses: terms.uses,
        expiresAt: signed.grant.expiresAt, isUsable: isCurrent && !isExpired && isLeft,
        confirmed: use.confirmed,
        provisional: use.pending.filter { role(of: $0, at: wallSeconds) > .none })
    }
  }

  /// The grant that takes the role of a member away, or that revokes the invite with this one-time
  /// key.
  func removal(of key: NodeID) -> Grant {
    guard let use = uses[key] else { return Grant(subject: key, role: .none, form: form(of: key)) }
    let terms = use.published?.grant.terms ?? Grant.Terms(epoch: currentEpoch, uses: 1)
    return Grant(subject: key, role: .none, form: .bearer(terms))
  }

  /// The members whose roles have expired since the channel's key was last changed because of that,
  /// sorted by id. A role by an invite that no owner has confirmed is not among them: whoever holds
  /// such an invite has the key, whether it was used or not.
  public func newlyExpiredMembers(at wallSeconds: UInt64) -> [NodeID] {
    memberGrants.keys.filter { isNewlyExpired($0, at: wallSeconds) }
  }

  /// Whether a member is among the `newlyExpiredMembers`.
  func isNewlyExpired(_ member: NodeID, at wallSeconds: UInt64) -> Bool {
    let decision = grantedRole(of: member, at: wallSeconds)
    return decision.hasRoleEnded && decision.expiresAt > Grant.longExpired
  }

  /// Whether a role has expired that an owner gave to the member, or confirmed.
  func hasRoleEnded(of member: NodeID, at wallSeconds: UInt64) -> Bool {
    grantedRole(of: member, at: wallSeconds).hasRoleEnded
  }

  /// The grants that record that the key was changed after the roles of these members had expired:
  /// the same roles, so that what the members have written stays, but long expired.
  func records(of expired: [NodeID]) -> [Grant] {
    expired.compactMap { member in
      guard let newest = memberGrants[member]?.direct.first?.grant else { return nil }
      return Grant(
        subject: member, role: newest.role, expiresAt: Grant.longExpired, form: newest.form)
    }
  }

  /// The form of a new grant for a member: one that came by an invite shares the limits of all who
  /// did, whatever its role.
  public func form(of member: NodeID) -> Grant.Form {
    invite(of: member).map { .byInvite($0) } ?? .direct
  }

  /// The members that came by invites and stay when `removed` are removed, those confirmed last
  /// first. A key change names them, since their grants may arrive after it.
  public func confirmedMembers(removing removed: [NodeID], at wallSeconds: UInt64) -> [NodeID] {
    memberGrants.compactMap { member, held -> (member: NodeID, grant: SignedEntry)? in
      guard let newest = held.direct.first, newest.author == owner,
        let invite = newest.grant.invite, !removed.contains(member), !removed.contains(invite),
        role(of: member, at: wallSeconds) > .none
      else { return nil }
      return (member, newest.entry)
    }
    .sorted { $1.grant < $0.grant }.map(\.member)
  }

  /// Recomputes the rights if grants, redemptions, key changes or quarantined authors have changed.
  /// Returns the only keys whose rights differ from before; nil if those of any key may.
  @discardableResult
  public mutating func update(from document: Document) -> [NodeID]? {
    let isQuarantineAlike = document.quarantined == quarantined
    quarantined = document.quarantined
    guard let owner else { return nil }
    let former = basis
    basis = document.rightsVersion
    guard basis != former || !isQuarantineAlike else { return nil }
    if let former, isQuarantineAlike, let keys = document.concerned(since: former),
      let changed = follow(keys, in: document)
    {
      return changed
    }
    derive(from: document, owner: owner)
    return nil
  }

  private mutating func derive(from document: Document, owner: NodeID) {
    let grants = document.all(.grant)
    let changes = Self.changes(document.all(.epoch), of: owner)
    kept = changes.flatMap(\.change.kept).sorted()
    chain = Self.chain(changes, grants: grants.filter { $0.entry.author == owner })
    inviteEpoch = chain.last { !$0.change.removed.isEmpty }?.change.number ?? 0
    checkRedemptions(document.all(.redemption))
    collectGrants(grants, owner: owner)
    collectAdmissions(owner: owner)
  }

  // MARK: Decisions

  private func decision(of member: NodeID, at wallSeconds: UInt64) -> RoleDecision {
    if quarantined.contains(member) { return .refused(.equivocated) }
    return grantedRole(of: member, at: wallSeconds)
  }

  /// The role that the grants for a member give, whether the member is quarantined or not.
  func grantedRole(of member: NodeID, at wallSeconds: UInt64) -> RoleDecision {
    guard let owner else { return RoleDecision(role: .presenter) }
    if member == owner { return RoleDecision(role: .owner) }
    guard let held = memberGrants[member] else { return .refused(.noGrant) }
    let byOwner = held.decision(epoch: inviteEpoch, at: wallSeconds) { $0 == owner }
    // Only the channel's owner can revoke another member's owner role.
    if byOwner.role == .owner { return byOwner }
    return held.decision(epoch: inviteEpoch, at: wallSeconds) {
      $0 == owner || isOwner($0, at: wallSeconds)
    }
  }

  /// Whether `member` has the owner role at this time, by a grant of the channel's owner.
  func isOwner(_ member: NodeID, at wallSeconds: UInt64) -> Bool {
    guard !quarantined.contains(member), let held = memberGrants[member] else { return false }
    return held.decision(epoch: inviteEpoch, at: wallSeconds) { $0 == owner }.role == .owner
  }
}

extension Rights {
  /// Whether these rights are what the document says, derived from nothing (for tests).
  package func agrees(with document: Document) -> Bool {
    var anew = self
    anew.basis = nil
    anew.update(from: document)
    return memberGrants.elementsEqual(anew.memberGrants) { $0 == $1 }
      && uses.elementsEqual(anew.uses) { $0.key == $1.key && $0.value.agrees(with: $1.value) }
      && admissions.elementsEqual(anew.admissions) { $0 == $1 }
      && checked.keys == anew.checked.keys && owners == anew.owners
  }

  /// The violated invariants of these rights (for tests); empty if all hold.
  package func checkInvariants() -> [String] {
    var faults: [String] = []
    if chain.count > Limits.epochs { faults.append("\(chain.count) key changes") }
    for (index, link) in chain.enumerated() {
      let previous = index == 0 ? EntryID.zero : chain[index - 1].entry.id
      if link.change.number != UInt32(index) + 1 || link.change.previous != previous {
        faults.append("key change \(link.change.number) does not follow the one before it")
      }
      if link.entry.entry.author != owner { faults.append("a key change that is not the owner's") }
    }
    if checked.count > Limits.authors { faults.append("too many redemptions") }
    if owners != owners.sorted() { faults.append("owners are out of order") }
    for (_, held) in memberGrants {
      let isSorted = zip(held.direct, held.direct.dropFirst()).allSatisfy {
        $1.entry < $0.entry
      }
      if !isSorted { faults.append("grants of a member are out of order") }
    }
    if owner == nil, memberGrants.count + chain.count > 0 {
      faults.append("rights without an owner")
    }
    return faults
  }
}
