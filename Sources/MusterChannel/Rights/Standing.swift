import MusterBase
import MusterWire

/// The grants and removals that owners have signed about one key.
struct Standing: Sendable {
  /// A grant and the signed entry that carries it.
  struct Word: Sendable {
    var entry: SignedEntry
    var grant: Grant
  }

  /// Direct grants, newest first, signed by the channel's owner or by a member to which the
  /// channel's owner granted the owner role, even if that role has expired.
  var direct: [Word] = []
  /// The bearer grant that the key has redeemed.
  var invite: Word?
  /// The newest key change that removed this member.
  var removal: SignedEntry?

  /// The role at a time in seconds since 1970; only grants whose author satisfies `isGranter`
  /// count.
  func judgement(
    epoch: UInt32, at wallSeconds: UInt64, isGranter: (NodeID) -> Bool
  ) -> Judgement {
    let invite = invite.flatMap { isGranter($0.author) ? $0 : nil }
    let newest = direct.first { isGranter($0.author) }
    if let newest, isCurrent(newest) {
      let judgement = Self.judgement(of: newest.grant, at: wallSeconds)
      guard let invite, newest.entry < invite.entry else { return judgement }
      let invited = self.judgement(ofInvite: invite.grant, epoch: epoch, at: wallSeconds)
      // The invite is newer, but it must not lower the role that the direct grant gives.
      return judgement.role > invited.role ? judgement : invited
    }
    if let invite { return judgement(ofInvite: invite.grant, epoch: epoch, at: wallSeconds) }
    return .refused(removal == nil ? .noGrant : .removed)
  }

  mutating func shutOut(by change: SignedEntry) {
    if let removal, change < removal { return }
    removal = change
  }

  /// Whether a grant is newer than the member's removal; older grants are void.
  private func isCurrent(_ word: Word) -> Bool {
    removal.map { $0 < word.entry } ?? true
  }

  private func judgement(
    ofInvite grant: Grant, epoch: UInt32, at wallSeconds: UInt64
  ) -> Judgement {
    // An invite of a later epoch proves a key change whose entry has not arrived yet.
    guard grant.epoch >= epoch else {
      return .refused(removal == nil ? .inviteOutdated : .removed)
    }
    var judgement = Self.judgement(of: grant, at: wallSeconds)
    judgement.isByInvite = true
    return judgement
  }

  private static func judgement(of grant: Grant, at wallSeconds: UInt64) -> Judgement {
    if grant.role == .none { return .refused(.removed) }
    if grant.expiresAt != 0, grant.expiresAt <= wallSeconds { return .refused(.expired) }
    return Judgement(role: grant.role, expiresAt: grant.expiresAt)
  }
}

/// The role of one key at one time, with the reason for a refusal.
struct Judgement: Sendable {
  var role: Role
  /// The time at which the role ends, in seconds since 1970; 0 for never.
  var expiresAt: UInt64 = 0
  var isByInvite = false
  /// The reason for the refusal; nil for a member.
  var refusal: Refusal?

  static func refused(_ reason: Refusal) -> Judgement { Judgement(role: .none, refusal: reason) }
}

/// The cached result of verifying an author's newest redemption.
struct CheckedRedemption: Sendable {
  var id: EntryID
  /// The invite's grant; nil if the redemption is not valid.
  var word: Standing.Word?
}
