import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// The effects of a change of the channel's key on its members.
struct RightsEpochTests {
  @Test func epochsFormOneChain() {
    var club = Club()
    let first = club.owner.epoch(1, lamport: 1)
    let second = club.owner.epoch(2, after: first, lamport: 2)
    let third = club.owner.epoch(3, after: second, lamport: 3)
    club.add(third)
    #expect(club.rights.currentEpoch == 0)
    club.add(first)
    #expect(club.rights.currentEpoch == 1)
    club.add(second)
    #expect(club.rights.currentEpoch == 3)
    #expect(club.rights.epochs.map(\.id) == [first, second, third].map(\.id))
    #expect(club.rights.epochs.map(\.bytes) == [first, second, third].map(\.bytes))
    #expect(club.rights.epochs.map(\.change.number) == [1, 2, 3])
  }

  @Test func ofTwoChangesAfterTheSameOneTheFirstInTheOrderHolds() {
    for isReversed in [false, true] {
      var club = Club()
      let early = club.owner.epoch(1, lamport: 5)
      let late = club.owner.epoch(1, lamport: 6)
      let afterLate = club.owner.epoch(2, after: late, lamport: 7)
      let afterEarly = club.owner.epoch(2, after: early, lamport: 8)
      let all = [early, late, afterLate, afterEarly]
      club.add(isReversed ? all.reversed() : all)
      #expect(club.rights.epochs.map(\.id) == [early.id, afterEarly.id])
    }
  }

  @Test func nobodyButTheFirstOwnerChangesTheKey() {
    var club = Club()
    var (coOwner, member) = (club.pen(1), club.pen(2))
    club.add(
      club.owner.grant(.owner, to: coOwner.id, lamport: 1),
      club.owner.grant(.presenter, to: member.id, lamport: 2),
      coOwner.epoch(1, removing: [member.id], lamport: 3),
      member.epoch(1, removing: [coOwner.id], lamport: 4))
    #expect(club.rights.currentEpoch == 0)
    #expect(club.role(member) == .presenter)
    #expect(club.role(coOwner) == .owner)
  }

  /// The Lamport counter of a redemption does not prove when it was signed: a newcomer's starts at
  /// the lowest value, and a forger chooses any.
  @Test(arguments: [1, 10, 11, 100] as [UInt64])
  func anInviteFromBeforeARemovalIsRefused(lamport: UInt64) {
    var club = Club()
    var late = club.pen(1)
    let invite = club.invite(lamport: 2)
    club.add(club.owner.epoch(1, removing: [club.pen(2).id], lamport: 10))
    club.add(late.redeem(invite, with: club.secret, lamport: lamport))
    #expect(club.role(late) == .none)
    #expect(club.refusal(late) == .inviteOutdated)
    // A new invite admits the member.
    let renewed = club.invite(epoch: 1, lamport: 12)
    club.add(late.redeem(renewed, with: club.secret, lamport: 200))
    #expect(club.role(late) == .presenter)
  }

  /// The owner changes the key after roles have expired as well.
  @Test func aChangeThatRemovesNobodyLeavesInvitesValid() {
    var club = Club()
    var (early, late) = (club.pen(1), club.pen(2))
    let invite = club.invite(uses: 2, lamport: 2)
    club.add(early.redeem(invite, with: club.secret, lamport: 3))
    let first = club.owner.epoch(1, lamport: 10)
    club.add(first)
    #expect(club.role(early) == .presenter)
    club.add(late.redeem(invite, with: club.secret, lamport: 4))
    #expect(club.role(late) == .presenter)
    let removal = club.owner.epoch(2, after: first, removing: [early.id], lamport: 11)
    club.add(removal)
    #expect(club.refusal(early) == .removed && club.refusal(late) == .inviteOutdated)
    // What follows does not bring the invite back.
    club.add(club.owner.epoch(3, after: removal, lamport: 12))
    #expect(club.refusal(late) == .inviteOutdated)
  }

  @Test func confirmedMembersKeepTheirRolesThroughAKeyChange() {
    var club = Club()
    var (stays, goes, late, direct) = (club.pen(1), club.pen(2), club.pen(3), club.pen(4))
    let invite = club.invite(.attendee, lamport: 1)
    club.add(
      stays.redeem(invite, with: club.secret, lamport: 2),
      goes.redeem(invite, with: club.secret, lamport: 3),
      club.owner.grant(.presenter, to: direct.id, lamport: 4))
    club.confirmUses(lamport: 5)
    club.add(late.redeem(invite, with: club.secret, lamport: 6))

    let kept = club.rights.confirmedMembers(removing: [goes.id], at: 0)
    #expect(kept == [stays.id])
    let change = EpochChange(
      number: 1, keyID: otherKey.keyID, previous: .zero, removed: [goes.id],
      kept: kept.map(\.key.prefix))
    club.add(club.owner.sign(.epoch(change), lamport: 7))
    #expect(club.role(stays) == .attendee)
    #expect(club.role(direct) == .presenter)
    #expect(club.refusal(goes) == .removed)
    // Nobody has confirmed this key, so the change gives it nothing.
    #expect(club.refusal(late) == .inviteOutdated)
  }

  @Test func aChangeThatRemovesAnInviteRemovesAllWhoCameByIt() {
    var club = Club()
    var (confirmed, promoted, pending, other) = (club.pen(1), club.pen(2), club.pen(3), club.pen(4))
    let invite = club.invite(.attendee, lamport: 1)
    club.add(
      confirmed.redeem(invite, with: club.secret, lamport: 2),
      promoted.redeem(invite, with: club.secret, lamport: 2),
      club.owner.grant(.attendee, to: other.id, lamport: 3))
    club.confirmUses(lamport: 4)
    let form = club.rights.form(of: promoted.id)
    club.add(
      pending.redeem(invite, with: club.secret, lamport: 5),
      club.owner.grant(.presenter, to: promoted.id, form: form, lamport: 5))
    club.add(club.owner.epoch(1, removing: [club.secret.id], lamport: 6))
    for pen in [confirmed, promoted] { #expect(club.refusal(pen) == .removed) }
    #expect(club.refusal(pending) == .inviteOutdated)
    #expect(club.role(other) == .attendee)
    club.add(club.owner.grant(.consumer, to: confirmed.id, form: form, lamport: 7))
    #expect(club.role(confirmed) == .consumer)
  }

  @Test func aRemovedMemberReturnsOnlyByANewerGrant() {
    var club = Club()
    var member = club.pen(1)
    let invite = club.invite(lamport: 1)
    let change = club.owner.epoch(1, removing: [member.id], lamport: 5)
    club.add(
      club.owner.grant(.presenter, to: member.id, lamport: 4),
      member.redeem(invite, with: club.secret, lamport: 2), change)
    #expect(club.role(member) == .none)
    #expect(club.refusal(member) == .removed)
    club.add(member.redeem(invite, with: club.secret, lamport: 60))
    #expect(club.role(member) == .none)

    var invited = club
    let renewed = invited.invite(.consumer, epoch: 1, lamport: 7)
    invited.add(member.redeem(renewed, with: invited.secret, lamport: 80))
    #expect(invited.role(member) == .consumer)
    club.add(club.owner.grant(.attendee, to: member.id, lamport: 6))
    #expect(club.role(member) == .attendee)
  }

  @Test func anInviteOfALaterEpochCounts() {
    var club = Club()
    var member = club.pen(1)
    let invite = club.invite(epoch: 2, lamport: 9)
    club.add(member.redeem(invite, with: club.secret, lamport: 10))
    #expect(club.role(member) == .presenter)
    let first = club.owner.epoch(1, lamport: 5)
    club.add(first, club.owner.epoch(2, after: first, lamport: 6))
    #expect(club.role(member) == .presenter)
    let second = club.rights.epochs.last?.id ?? .zero
    let third = EpochChange(
      number: 3, keyID: otherKey.keyID, previous: second, removed: [club.pen(2).id])
    club.add(club.owner.sign(.epoch(third), lamport: 11))
    #expect(club.refusal(member) == .inviteOutdated)
  }
}
