import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// Roles that are granted directly.
struct RightsGrantTests {
  @Test func theOwnersRoleCannotBeTakenAway() {
    var club = Club()
    var coOwner = club.pen(1)
    club.add(
      club.owner.grant(.owner, to: coOwner.id, lamport: 1),
      coOwner.grant(.none, to: club.owner.id, lamport: 2),
      club.owner.grant(.none, to: club.owner.id, expiresAt: 1, lamport: 3),
      club.owner.epoch(1, removing: [club.owner.id], lamport: 4))
    #expect(club.role(club.owner, at: 99) == .owner)
    #expect(club.refusal(club.owner, at: 99) == nil)
  }

  @Test func theNewestGrantHolds() {
    var club = Club()
    let member = club.pen(1)
    #expect(club.role(member) == .none)
    #expect(club.refusal(member) == .noGrant)
    let second = club.owner.grant(.presenter, to: member.id, lamport: 2)
    let first = club.owner.grant(.consumer, to: member.id, lamport: 1)
    club.add(second, first)
    #expect(club.role(member) == .presenter)
    club.add(club.owner.grant(.none, to: member.id, lamport: 3))
    #expect(club.role(member) == .none)
    #expect(club.refusal(member) == .removed)
    club.add(club.owner.grant(.attendee, to: member.id, lamport: 4))
    #expect(club.role(member) == .attendee)
    #expect(club.refusal(member) == nil)
  }

  @Test func anExpiredGrantIsNotReplacedByAnOlderOne() {
    var club = Club()
    let member = club.pen(1)
    club.add(
      club.owner.grant(.consumer, to: member.id, lamport: 1),
      club.owner.grant(.presenter, to: member.id, expiresAt: 500, lamport: 2))
    #expect(club.role(member, at: 499) == .presenter)
    #expect(club.rights.nextExpiry(after: 0) == 500)
    #expect(club.rights.nextExpiry(after: 499) == 500)
    #expect(club.rights.nextExpiry(after: 500) == nil)
    for time in [500, 501, .max] as [UInt64] {
      #expect(club.role(member, at: time) == .none)
      #expect(club.refusal(member, at: time) == .expired)
    }
  }

  @Test func onlyOwnersGrant() {
    var club = Club()
    var (presenter, outsider, friend) = (club.pen(1), club.pen(2), club.pen(3))
    club.add(
      club.owner.grant(.presenter, to: presenter.id, lamport: 1),
      presenter.grant(.owner, to: presenter.id, lamport: 9),
      presenter.grant(.attendee, to: friend.id, lamport: 9),
      outsider.grant(.owner, to: outsider.id, lamport: 9),
      outsider.grant(.none, to: presenter.id, lamport: Entry.lamportLimit))
    #expect(club.role(presenter) == .presenter)
    #expect(club.role(outsider) == .none)
    #expect(club.role(friend) == .none)
    #expect(club.rights.members(at: 0).map(\.role).sorted() == [.presenter, .owner])
  }

  @Test func aBearerGrantIsNoDirectOne() {
    var club = Club()
    let secret = Pen(900, in: club.genesis.channelID)
    club.add(club.invite(lamport: 1))
    #expect(club.role(secret) == .none)
  }

  @Test func ownersGrantLowerRoles() {
    var club = Club()
    var (coOwner, other, member) = (club.pen(1), club.pen(2), club.pen(3))
    club.add(
      club.owner.grant(.owner, to: coOwner.id, expiresAt: 1000, lamport: 1),
      coOwner.grant(.presenter, to: member.id, lamport: 2),
      coOwner.grant(.owner, to: other.id, lamport: 3))
    #expect(club.rights.may(.grant, coOwner.id, at: 0))
    #expect(club.role(member) == .presenter)
    #expect(club.role(other) == .none)
    // The co-owner's grants end with its own role.
    #expect(club.role(member, at: 1000) == .none)
    club.add(club.owner.grant(.attendee, to: coOwner.id, lamport: 4))
    #expect(club.role(member) == .none)
  }

  @Test func noOwnerRevokesAnotherMadeByTheFirst() {
    var club = Club()
    var (coOwner, other) = (club.pen(1), club.pen(2))
    club.add(
      club.owner.grant(.owner, to: coOwner.id, lamport: 1),
      club.owner.grant(.owner, to: other.id, lamport: 2),
      coOwner.grant(.none, to: other.id, lamport: 3),
      coOwner.grant(.consumer, to: coOwner.id, lamport: 4))
    #expect(club.role(other) == .owner)
    #expect(club.role(coOwner) == .owner)
  }

  @Test func onlyTheFirstOwnerRemovesOtherOwners() {
    var club = Club()
    var (a, b) = (club.pen(1), club.pen(2))
    club.add(
      club.owner.grant(.owner, to: a.id, lamport: 1),
      club.owner.grant(.owner, to: b.id, lamport: 2),
      a.grant(.none, to: b.id, lamport: 3), b.grant(.none, to: a.id, lamport: 4),
      club.owner.grant(.none, to: a.id, lamport: 5))
    #expect(club.role(a) == .none)
    #expect(club.role(b) == .owner)
  }

  @Test func anEquivocatingMemberLosesItsRole() {
    var club = Club()
    let member = club.pen(1)
    club.add(club.owner.grant(.presenter, to: member.id, lamport: 1))
    var (first, second) = (member, member)
    club.add(first.claim(1, lamport: 2), second.claim(2, lamport: 3))
    #expect(club.role(member) == .none)
    #expect(club.refusal(member) == .equivocated)
    #expect(!club.rights.may(.receive, member.id, at: 0))
  }

  @Test func aGrantForAnotherChannelIsNotSigned() throws {
    var elsewhere = Pen(100)
    let club = Club()
    let grant = elsewhere.grant(.owner, to: testIdentity(1).id, lamport: 1)
    #expect(throws: SignedEntry.Fault.forged) {
      try SignedEntry.verified(grant.bytes, in: club.genesis.channelID)
    }
  }

  @Test func membersAreListedWithTheirRoles() {
    var club = Club()
    let (a, b, gone) = (club.pen(1), club.pen(2), club.pen(3))
    club.add(
      club.owner.grant(.presenter, to: a.id, expiresAt: 700, lamport: 1),
      club.owner.grant(.consumer, to: b.id, lamport: 2),
      club.owner.grant(.none, to: gone.id, lamport: 3))
    let members = club.rights.members(at: 1)
    #expect(members.map(\.member) == [a.id, b.id, club.owner.id].sorted())
    #expect(members.first { $0.member == a.id }?.expiresAt == 700)
    #expect(members.first { $0.member == b.id }?.expiresAt == 0)
    #expect(members.first { $0.member == club.owner.id }?.role == .owner)
  }
}
