import MusterBase
import MusterWire

/// What owners have said of one key.
struct Standing: Sendable {
  /// A grant and the signed entry that says so.
  struct Word: Sendable {
    var entry: SignedEntry
    var grant: Grant
  }

  /// Newest first; by everyone who is an owner or may be one at some time.
  var direct: [Word] = []
  /// The bearer grant that it has redeemed.
  var invite: Word?
  /// The newest change of the key that shut it out.
  var removal: SignedEntry?

  /// What holds at a time, counting only what was granted by `isGranter`.
  func judgement(
    epoch: UInt32, at wallSeconds: UInt64, isGranter: (NodeID) -> Bool
  ) -> Judgement {
    let invite = invite.flatMap { isGranter($0.author) ? $0 : nil }
    let newest = direct.first { isGranter($0.author) }
    if let newest, isCurrent(newest) {
      let judgement = Self.judgement(of: newest.grant, at: wallSeconds)
      guard let invite, newest.entry < invite.entry else { return judgement }
      let invited = self.judgement(ofInvite: invite.grant, epoch: epoch, at: wallSeconds)
      // The invite is the newer word, unless it gives less than the member has anyway.
      return judgement.role > invited.role ? judgement : invited
    }
    if let invite { return judgement(ofInvite: invite.grant, epoch: epoch, at: wallSeconds) }
    return .refused(removal == nil ? .noGrant : .removed)
  }

  mutating func shutOut(by change: SignedEntry) {
    if let removal, change < removal { return }
    removal = change
  }

  /// A grant from before the member was shut out is void.
  private func isCurrent(_ word: Word) -> Bool {
    removal.map { $0 < word.entry } ?? true
  }

  private func judgement(
    ofInvite grant: Grant, epoch: UInt32, at wallSeconds: UInt64
  ) -> Judgement {
    // One of a later epoch shows that there has been a change that is still on its way.
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

/// What one key may do at one time, and why not more.
struct Judgement: Sendable {
  var role: Role
  /// When the role ends; 0 for never.
  var expiresAt: UInt64 = 0
  var isByInvite = false
  /// Nil for a member.
  var refusal: Refusal?

  static func refused(_ reason: Refusal) -> Judgement { Judgement(role: .none, refusal: reason) }
}

/// An author's newest redemption, looked at once.
struct CheckedRedemption: Sendable {
  var id: EntryID
  /// The invite's grant; nil when anything about it is wrong.
  var word: Standing.Word?
}
