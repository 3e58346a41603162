import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// Roles that come by an invite.
struct RightsInviteTests {
  @Test func anInviteGrantsItsRole() {
    var club = Club()
    var (a, b) = (club.pen(1), club.pen(2))
    let invite = club.invite(.attendee, lamport: 1)
    #expect(club.role(a) == .none)
    club.add(a.redeem(invite, with: club.secret, lamport: 2))
    #expect(club.role(a) == .attendee)
    #expect(club.role(b) == .none)
    club.add(b.redeem(invite, with: club.secret, lamport: 3))
    #expect(club.role(a) == .attendee)
    #expect(club.role(b) == .attendee)
    #expect(club.rights.members(at: 0).count == 3)
  }

  @Test func anInviteExpires() {
    var club = Club()
    var member = club.pen(1)
    let invite = club.invite(expiresAt: 500, lamport: 1)
    club.add(member.redeem(invite, with: club.secret, lamport: 2))
    #expect(club.role(member, at: 499) == .presenter)
    #expect(club.rights.nextExpiry(after: 0) == 500)
    #expect(club.role(member, at: 500) == .none)
    #expect(club.refusal(member, at: 500) == .expired)
  }

  /// Forges each part of a redemption, one at a time.
  @Test func aForgedRedemptionGivesNothing() {
    var club = Club()
    var (thief, robbed) = (club.pen(1), club.pen(2))
    let invite = club.invite(lamport: 1)
    let channel = club.genesis.channelID
    var outsider = club.pen(3)
    var outside = Pen(100)

    let honest = Invites.redemption(
      of: invite.bytes, secret: club.secret, by: robbed.id, in: channel)
    var damaged = invite.bytes
    damaged[80] ^= 1
    let direct = club.owner.grant(.presenter, to: club.secret.id, lamport: 1)
    let selfMade = outsider.grant(
      .owner, to: club.secret.id, form: .bearer(Grant.Terms(epoch: 0, uses: 0)), lamport: 1)
    let foreign = outside.grant(
      .owner, to: club.secret.id, form: .bearer(Grant.Terms(epoch: 0, uses: 0)), lamport: 1)
    let noGrant = club.owner.claim(1, lamport: 1)
    var forgeries = [
      honest,
      Invites.redemption(
        of: invite.bytes, secret: testIdentity(901), by: thief.id, in: channel),
      Invites.redemption(
        of: invite.bytes, secret: club.secret, by: thief.id, in: testKey.channelID),
      Redemption(grant: invite.bytes, signature: [UInt8](repeating: 0, count: 64)),
    ]
    let long = [UInt8](repeating: 1, count: 5000)
    for grant in [
      damaged, direct.bytes, selfMade.bytes, foreign.bytes, noGrant.bytes, [], long,
      Array(invite.bytes.dropLast()), invite.bytes + [0],
    ] {
      forgeries.append(
        Invites.redemption(of: grant, secret: club.secret, by: thief.id, in: channel))
    }
    for (index, forgery) in forgeries.enumerated() {
      club.add(thief.sign(.redemption(forgery), lamport: UInt64(index) + 2))
      #expect(club.role(thief) == .none, "forgery \(index)")
      #expect(club.refusal(thief) == .noGrant, "forgery \(index)")
    }
    club.add(robbed.sign(.redemption(honest), lamport: 50))
    #expect(club.role(robbed) == .presenter)
  }

  @Test func ofTwoRedemptionsTheNewestCounts() {
    var club = Club()
    var member = club.pen(1)
    let (weak, strong) = (club.invite(.consumer, lamport: 1), club.invite(lamport: 2))
    let first = member.redeem(weak, with: club.secret, lamport: 3)
    let second = member.redeem(strong, with: club.secret, lamport: 4)
    club.add(second, first)
    #expect(club.role(member) == .presenter)
  }

  @Test func aNewerDirectGrantStandsAboveAnInvite() {
    var club = Club()
    var member = club.pen(1)
    let invite = club.invite(lamport: 5)
    club.add(member.redeem(invite, with: club.secret, lamport: 6))
    club.add(club.owner.grant(.consumer, to: member.id, expiresAt: 500, lamport: 7))
    #expect(club.role(member, at: 1) == .consumer)
    #expect(club.refusal(member, at: 500) == .expired)
    club.add(club.owner.grant(.none, to: member.id, lamport: 8))
    #expect(club.role(member) == .none)
    #expect(club.refusal(member) == .removed)
    // Redeeming the same invite again has no effect.
    club.add(member.redeem(invite, with: club.secret, lamport: 90))
    #expect(club.role(member) == .none)
  }

  @Test func anOlderDirectGrantStandsBesideAnInvite() {
    var club = Club()
    var (a, b) = (club.pen(1), club.pen(2))
    club.add(
      club.owner.grant(.presenter, to: a.id, lamport: 1),
      club.owner.grant(.none, to: b.id, lamport: 2))
    let invite = club.invite(.consumer, lamport: 3)
    club.add(
      a.redeem(invite, with: club.secret, lamport: 4),
      b.redeem(invite, with: club.secret, lamport: 5))
    #expect(club.role(a) == .presenter)
    #expect(club.role(b) == .consumer)
  }

  @Test func ownersInviteToLowerRoles() {
    var club = Club()
    var (coOwner, a, b) = (club.pen(1), club.pen(2), club.pen(3))
    club.add(club.owner.grant(.owner, to: coOwner.id, expiresAt: 500, lamport: 1))
    let secret = club.secret.id
    let modest = coOwner.grant(
      .presenter, to: secret, form: .bearer(Grant.Terms(epoch: 0, uses: 0)), lamport: 2)
    let bold = coOwner.grant(
      .owner, to: secret, form: .bearer(Grant.Terms(epoch: 0, uses: 0)), lamport: 3)
    club.add(
      a.redeem(modest, with: club.secret, lamport: 4),
      b.redeem(bold, with: club.secret, lamport: 5))
    #expect(club.role(a, at: 499) == .presenter)
    #expect(club.role(a, at: 500) == .none)
    #expect(club.role(b) == .none)
  }

  @Test func anOwnerCanComeByInvite() {
    var club = Club()
    var (coOwner, member) = (club.pen(1), club.pen(2))
    let invite = club.invite(.owner, lamport: 1)
    club.add(
      coOwner.redeem(invite, with: club.secret, lamport: 2),
      coOwner.grant(.attendee, to: member.id, lamport: 3))
    #expect(club.role(coOwner) == .owner)
    #expect(club.role(member) == .attendee)
  }
}
