import MusterBase
import MusterWire

/// A grant and the signed entry that carries it.
struct SignedGrant: Equatable, Sendable {
  var entry: SignedEntry
  var grant: Grant
}

/// The grants and removals that owners have signed about one key.
struct MemberGrants: Equatable, Sendable {
  /// Direct grants, newest first, signed by the channel's owner or by a member to which the
  /// channel's owner granted the owner role, even if that role has expired.
  var direct: [SignedGrant] = []
  /// The bearer grant that the key has redeemed.
  var invite: SignedGrant?
  /// Why the invite gives this key nothing; nil if it gives its role.
  var inviteRefusal: Refusal?
  /// The newest key change that removed this member, or the invite by which it came.
  var removal: SignedEntry?

  /// The role at a time in seconds since 1970; only grants whose author satisfies `isGranter`
  /// count.
  func decision(
    epoch: UInt32, at wallSeconds: UInt64, isGranter: (NodeID) -> Bool
  ) -> RoleDecision {
    let invite = invite.flatMap { isGranter($0.author) ? $0 : nil }
    let newest = direct.first { isGranter($0.author) }
    if let newest, isCurrent(newest) {
      let decision = Self.decision(of: newest.grant, at: wallSeconds)
      guard let invite, newest.entry < invite.entry else { return decision }
      let invited = self.decision(ofInvite: invite.grant, epoch: epoch, at: wallSeconds)
      // The invite is newer, but it must not lower the role that the direct grant gives.
      return decision.role > invited.role ? decision : invited
    }
    if let invite { return decision(ofInvite: invite.grant, epoch: epoch, at: wallSeconds) }
    return .refused(removal == nil ? .noGrant : .removed)
  }

  /// Whether nothing is known about the key.
  var isEmpty: Bool { direct.isEmpty && invite == nil && removal == nil }

  /// The one-time key of the invite whose use by this key an owner has confirmed.
  var confirmedInvite: NodeID? { direct.first { $0.grant.invite != nil }?.grant.invite }

  /// The invite that the key has redeemed, unless an owner has confirmed the use.
  var unconfirmedInvite: Grant? {
    invite.flatMap { $0.grant.subject == confirmedInvite ? nil : $0.grant }
  }

  /// The time at which the next of the grants expires, in seconds since 1970; nil if none does.
  func nextExpiry(after wallSeconds: UInt64) -> UInt64? {
    var next: UInt64?
    func note(_ time: UInt64?) {
      if let time, time > wallSeconds { next = min(next ?? time, time) }
    }
    for signed in direct { note(signed.grant.expiresAt) }
    note(invite?.grant.expiresAt)
    note(invite?.grant.terms?.roleExpiresAt)
    return next
  }

  mutating func shutOut(by change: SignedEntry) {
    if let removal, change < removal { return }
    removal = change
  }

  /// Whether a grant is newer than the member's removal; older grants are void.
  private func isCurrent(_ signed: SignedGrant) -> Bool {
    removal.map { $0 < signed.entry } ?? true
  }

  private func decision(
    ofInvite grant: Grant, epoch: UInt32, at wallSeconds: UInt64
  ) -> RoleDecision {
    // An invite of a later epoch proves a key change whose entry has not arrived yet.
    guard let terms = grant.terms, terms.epoch >= epoch else {
      return .refused(removal == nil ? .inviteOutdated : .removed)
    }
    if let inviteRefusal { return .refused(inviteRefusal) }
    // Until an owner confirms it, the role ends with the invite, too.
    var limited = grant
    let ends = [grant.expiresAt, terms.roleExpiresAt].filter { $0 != 0 }
    limited.expiresAt = ends.min() ?? 0
    var decision = Self.decision(of: limited, at: wallSeconds)
    decision.viaInvite = true
    return decision
  }

  private static func decision(of grant: Grant, at wallSeconds: UInt64) -> RoleDecision {
    if grant.role == .none { return .refused(.removed) }
    if grant.expiresAt != 0, grant.expiresAt <= wallSeconds {
      return RoleDecision(role: .none, expiresAt: grant.expiresAt, refusal: .expired)
    }
    return RoleDecision(role: grant.role, expiresAt: grant.expiresAt)
  }
}

/// The role of one key at one time, with the reason for a refusal.
struct RoleDecision: Sendable {
  var role: Role
  /// The time at which the role ends, or has ended by itself, in seconds since 1970; 0 for never.
  var expiresAt: UInt64 = 0
  var viaInvite = false
  /// The reason for the refusal; nil for a member.
  var refusal: Refusal?

  /// Whether it is a role that has expired, and not an invite.
  var hasRoleEnded: Bool { refusal == .expired && !viaInvite }

  static func refused(_ reason: Refusal) -> RoleDecision {
    RoleDecision(role: .none, refusal: reason)
  }
}

/// The cached result of verifying an author's newest redemption.
struct CheckedRedemption: Sendable {
  var id: EntryID
  /// The invite's grant; nil if the redemption is not valid.
  var signed: SignedGrant?
}
