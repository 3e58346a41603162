import MusterBase
import MusterWire

/// The admission of a key in a created channel, which decides which of its entries the document
/// keeps. Unlike a role, it neither changes with time, since the documents of members whose clocks
/// differ would never be equal, nor ends with a quarantine, whose proofs it admits.
package struct Admission: Equatable, Sendable {
  /// The one to whose share the entries of the key count: the invite by which it came, or the key
  /// itself.
  package var principal: NodeID
  /// The role, whether it has expired or not.
  package var role: Role
  /// The Lamport counter of the newest key change that removed the key, or the invite by which it
  /// came; nil if none did. Its messages up to there went with it; when it comes back, they do not,
  /// or others would be shown them twice.
  package var removedAt: UInt64?

  package init(principal: NodeID, role: Role, removedAt: UInt64? = nil) {
    self.principal = principal
    self.role = role
    self.removedAt = removedAt
  }
}

extension Rights {
  /// Collects the admissions of all keys that have one.
  mutating func collectAdmissions(owner: NodeID) {
    admissions = PeerTable()
    for member in memberGrants.keys { admissions[member] = admission(of: member) }
    admissions[owner] = admission(of: owner)
  }

  /// The admission of a key; nil if it has none.
  func admission(of member: NodeID) -> Admission? {
    if member == owner { return Admission(principal: member, role: .owner) }
    guard let held = memberGrants[member] else { return nil }
    let role = grantedRole(of: member, at: 0).role
    guard role > .none else { return nil }
    return Admission(
      principal: invite(of: member) ?? member, role: role, removedAt: held.removal?.entry.lamport)
  }

  /// Whether the document of a created channel admits an entry. Anyone can generate keys, so
  /// entries without the right must not displace others.
  ///
  /// `source` is the neighbour that sent the entry to `node`. Nobody comes by an invite that others
  /// have used up; what other members have let in on their side of a partition is taken from them.
  package func admits(
    _ entry: Entry, from source: NodeID? = nil, at node: NodeID? = nil
  ) -> Bool {
    guard owner != nil, case .redemption(let redemption) = entry.body else { return holds(entry) }
    let author = entry.author
    let grant = Invites.verified(redemption, by: author, in: channel)
    guard let signed = grant.flatMap(SignedGrant.init), isGranter(signed.author) else {
      return false
    }
    let shown = Showing(by: author, of: signed, from: source, at: node)
    return holds(entry)
      || decision(of: author, redeeming: signed, shown: shown, at: 0).role > .none
  }

  /// Whether the document of a created channel keeps an entry: whether its author has the role for
  /// it, or has had it until it expired.
  package func holds(_ entry: Entry) -> Bool {
    guard owner != nil else { return true }
    let admission = admissions[entry.author]
    let role = admission?.role ?? .none
    func permits(_ capability: Capability) -> Bool {
      policy.permits(capability.isAllowed(to: role, in: settings), false)
    }
    switch entry.body {
    case .epoch: return entry.author == owner
    case .grant: return role == .owner
    case .redemption: return admission != nil
    case .presence, .neighbourReport, .joining, .unknown: return permits(.receive)
    case .message:
      let isFromBefore = admission?.removedAt.map { entry.lamport <= $0 } ?? false
      return permits(.sendText) && !isFromBefore
    case .claim, .end: return permits(.startCall) || permits(.handOver)
    case .moderation: return permits(.moderate)
    }
  }

  /// Whether `author` may moderate `member`: it has a higher role, or is the channel's owner.
  /// Expired roles count as well: clocks differ, and what was done in a call stays done.
  public func moderates(_ author: NodeID, _ member: NodeID) -> Bool {
    guard let owner, author != member, member != owner else { return false }
    let role = admissions[author]?.role ?? .none
    let isHigher = author == owner || role > admissions[member]?.role ?? .none
    return policy.permits(
      Capability.moderate.isAllowed(to: role, in: settings) && isHigher, false)
  }

  /// Whether the document of `own` keeps an entry. A node keeps its own entries until it has a
  /// role: the grant may still arrive.
  func holds(_ entry: Entry, in own: NodeID) -> Bool {
    holds(entry) || entry.author == own && admissions[own]?.role ?? Role.none == Role.none
  }

  /// What a key without an admission gets by redeeming the invite with the grant in `signed`.
  private func decision(
    of member: NodeID, redeeming signed: SignedGrant, shown: Showing, at wallSeconds: UInt64
  ) -> RoleDecision {
    var held = memberGrants[member] ?? MemberGrants()
    held.invite = signed
    if let use = uses[signed.grant.subject] {
      if use.isRevoked { return .refused(.removed) }
      guard use.isLeft(for: member, with: signed, shown: shown) else {
        return .refused(.inviteUsedUp)
      }
    }
    return held.decision(epoch: inviteEpoch, at: wallSeconds, isGranter: isGranter)
  }

  /// What a redemption gives the key that shows it to `node`; nil if it is not valid as far as this
  /// document shows: the owner who signed the invite may be unknown.
  func decision(
    on redemption: Redemption, shownBy member: NodeID, to node: NodeID, at wallSeconds: UInt64
  ) -> RoleDecision? {
    let grant = Invites.verified(redemption, by: member, in: channel)
    guard let signed = grant.flatMap(SignedGrant.init), isGranter(signed.author) else { return nil }
    let shown = Showing(by: member, of: signed, from: member, at: node)
    return decision(of: member, redeeming: signed, shown: shown, at: wallSeconds)
  }

  /// Whether the grants of `author` count, or would but for the expiry of its role.
  func isGranter(_ author: NodeID) -> Bool { author == owner || isOwner(author, at: 0) }
}
