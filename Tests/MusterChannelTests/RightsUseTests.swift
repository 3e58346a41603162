import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// How often an invite can be used.
struct RightsUseTests {
  /// More than it says may come while its owner is away: those stay that the owner meets first.
  @Test func anInviteIsForAsManyKeysAsItSays() {
    var club = Club()
    let invite = club.invite(uses: 2, lamport: 1)
    var pens = (1...4).map { club.pen(UInt64($0)) }
    for index in pens.indices {
      club.add(pens[index].redeem(invite, with: club.secret, lamport: UInt64(index) + 2))
    }
    for pen in pens { #expect(club.role(pen) == .presenter) }
    #expect(club.confirmUses(lamport: 10).isEmpty)
    let (first, second, late) = (pens[3].id, pens[1].id, pens[0].id)
    #expect(club.confirmUses(meeting: [first], lamport: 11) == [first])
    for pen in pens { #expect(club.role(pen) == .presenter) }
    #expect(club.confirmUses(meeting: [first, second, late], lamport: 12) == [second])
    for pen in [pens[0], pens[2]] { #expect(club.refusal(pen) == .inviteUsedUp) }
    for pen in [pens[1], pens[3]] { #expect(club.role(pen) == .presenter) }
    #expect(club.confirmUses(meeting: [late], lamport: 13).isEmpty)
  }

  /// A key that has no role takes no use from those that the owner has met after it.
  @Test func anEquivocatorTakesNoUse() {
    var club = Club()
    let invite = club.invite(uses: 1, lamport: 1)
    var (culprit, honest) = (club.pen(1), club.pen(2))
    club.add(
      culprit.redeem(invite, with: club.secret, lamport: 2),
      honest.redeem(invite, with: club.secret, lamport: 2))
    let claims = [1, 2].map { call in
      SignedEntry.sign(
        Entry(author: culprit.id, sequence: 99, lamport: 4, body: Entries.claim(call)),
        by: culprit.identity, in: culprit.channel)
    }
    club.add(claims)
    #expect(club.confirmUses(meeting: [culprit.id, honest.id], lamport: 5) == [honest.id])
  }

  /// A member cannot take the roles of redeemers by letting others in, be it keys that it has
  /// searched for.
  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func keysThatFollowTakeNothingFromThoseBefore(seed: UInt64) {
    var prng = PRNG(seed: seed)
    var club = Club()
    let invite = club.invite(uses: 3, lamport: 1)
    club.add(club.invite(uses: 3, lamport: 2))
    var honest = (1...3).map { club.pen($0) }
    for index in honest.indices {
      club.add(honest[index].redeem(invite, with: club.secret, lamport: 3))
    }
    for number in prng.permuted(Array(4...30)) {
      var pen = club.pen(UInt64(number))
      let redemption = pen.redeem(invite, with: club.secret, lamport: 1 + UInt64(prng.below(9)))
      #expect(!club.rights.admits(redemption.entry, from: pen.id), "seed \(seed)")
      if club.rights.admits(redemption.entry) { club.add(redemption) }
      club.settle()
      for pen in honest { #expect(club.role(pen) == .presenter, "seed \(seed)") }
    }
    #expect(Set(club.confirmUses(meeting: honest.map(\.id), lamport: 60)) == Set(honest.map(\.id)))
    #expect(club.settle() == 27)
  }

  /// The owner's node lets nobody in where the invite is used up, but meets all of them if members
  /// have let in more than it permits.
  @Test func theInviterMeetsThoseWhoseRedemptionsWerePushedOut() {
    var club = Club()
    let invite = club.invite(uses: 2, lamport: 1)
    var pens = (1...4).map { club.pen($0) }
    func isAdmitted(_ pen: inout Pen, at node: NodeID) -> Bool {
      let entry = pen.redeem(invite, with: club.secret, lamport: 9).entry
      return club.rights.admits(entry, from: pen.id, at: node)
    }
    for index in 0..<3 {
      #expect(isAdmitted(&pens[3], at: club.owner.id) == (index < 2))
      #expect(isAdmitted(&pens[3], at: pens[0].id) == (index < 2))
      club.add(pens[index].redeem(invite, with: club.secret, lamport: 2))
    }
    #expect(isAdmitted(&pens[3], at: club.owner.id))
    #expect(!isAdmitted(&pens[3], at: pens[0].id))
    club.confirmUses(meeting: pens.map(\.id), lamport: 4)
    #expect(!isAdmitted(&pens[3], at: club.owner.id))
  }

  /// Confirmed keys stay, and are not more than the invite permits.
  @Test(arguments: 1...40 as ClosedRange<UInt64>)
  func aConfirmationIsFinal(seed: UInt64) {
    var prng = PRNG(seed: seed)
    var club = Club()
    let limit = 1 + prng.below(3)
    let invite = club.invite(uses: UInt32(limit), lamport: 1)
    var met: [NodeID] = []
    var confirmed: [NodeID] = []
    for number in prng.permuted(Array(1...8)) {
      var pen = club.pen(UInt64(number))
      if prng.chance(0.5) { met.append(pen.id) }
      club.add(pen.redeem(invite, with: club.secret, lamport: UInt64(prng.below(50)) + 2))
      if prng.chance(0.4) { confirmed += club.confirmUses(meeting: met, lamport: 60) }
      #expect(confirmed.count <= limit, "seed \(seed)")
      for member in confirmed {
        #expect(club.rights.role(of: member, at: 0) == .presenter, "seed \(seed)")
      }
      let members = (1...8).filter { club.role(club.pen(UInt64($0))) == .presenter }
      if confirmed.count == limit { #expect(members.count == limit, "seed \(seed)") }
    }
  }

  /// The invite's own expiry counts only until the owner has confirmed the role.
  @Test(arguments: [(50, 80), (80, 50), (0, 50), (50, 0)] as [(UInt64, UInt64)])
  func aRoleMayEndAtAnotherTimeThanItsInvite(inviteEnds: UInt64, roleEnds: UInt64) {
    var club = Club()
    var pen = club.pen(1)
    let invite = club.invite(
      expiresAt: inviteEnds, uses: 1, roleExpiresAt: roleEnds, lamport: 1)
    club.add(pen.redeem(invite, with: club.secret, lamport: 2))
    func lasts(until end: UInt64) -> Bool {
      club.role(pen, at: end - 1) == .presenter && club.refusal(pen, at: end) == .expired
    }
    #expect(lasts(until: 50))
    club.confirmUses(at: 10, lamport: 10)
    #expect(roleEnds == 0 ? club.role(pen, at: 1000) == .presenter : lasts(until: roleEnds))
  }

  /// An owner that lost its disk may confirm more keys than the invite permits: all of them stay.
  @Test func whoeverIsConfirmedStaysBeyondTheLimit() {
    var club = Club()
    var (a, b, c) = (club.pen(1), club.pen(2), club.pen(3))
    let invite = club.invite(uses: 1, lamport: 1)
    for member in [a.id, b.id] {
      club.add(
        club.owner.grant(.presenter, to: member, form: .byInvite(club.secret.id), lamport: 5))
    }
    club.add(
      a.redeem(invite, with: club.secret, lamport: 2),
      b.redeem(invite, with: club.secret, lamport: 2),
      c.redeem(invite, with: club.secret, lamport: 2))
    #expect(club.role(a) == .presenter)
    #expect(club.role(b) == .presenter)
    #expect(club.refusal(c) == .inviteUsedUp)
  }

  /// A use stays used when its member gets another role, or none.
  @Test(arguments: [Role.none, .consumer])
  func aUseIsNotGivenBack(role: Role) {
    var club = Club()
    var (first, second) = (club.pen(1), club.pen(2))
    let invite = club.invite(uses: 1, lamport: 1)
    club.add(first.redeem(invite, with: club.secret, lamport: 2))
    club.confirmUses(lamport: 3)
    club.add(
      club.owner.grant(role, to: first.id, form: club.rights.form(of: first.id), lamport: 4))
    club.add(second.redeem(invite, with: club.secret, lamport: 5))
    #expect(club.refusal(second) == .inviteUsedUp)
  }

  @Test func aRevokedInviteGivesNothing() {
    var club = Club()
    var (a, b) = (club.pen(1), club.pen(2))
    let invite = club.invite(lamport: 1)
    club.add(a.redeem(invite, with: club.secret, lamport: 2))
    #expect(club.role(a) == .presenter)
    club.add(club.invite(.none, lamport: 3))
    #expect(club.refusal(a) == .removed)
    club.add(b.redeem(invite, with: club.secret, lamport: 4))
    #expect(club.refusal(b) == .removed)
    #expect(club.confirmUses(lamport: 5).isEmpty)
  }

  @Test func aRoleOutlivesTheInviteByWhichItCame() {
    var club = Club()
    var (confirmed, late) = (club.pen(1), club.pen(2))
    let terms = Grant.Terms(epoch: 0, uses: 0, roleExpiresAt: 900)
    let invite = club.owner.grant(
      .attendee, to: club.secret.id, expiresAt: 500, form: .bearer(terms), lamport: 1)
    club.add(confirmed.redeem(invite, with: club.secret, lamport: 2))
    club.confirmUses(at: 499, lamport: 3)
    club.add(late.redeem(invite, with: club.secret, lamport: 4))
    #expect(club.confirmUses(at: 500, lamport: 5).isEmpty)
    #expect(club.refusal(late, at: 500) == .expired)
    #expect(club.role(confirmed, at: 899) == .attendee)
    #expect(club.refusal(confirmed, at: 900) == .expired)
  }

  @Test func onlyTheOwnerThatMadeAnInviteConfirmsItsUses() {
    var club = Club()
    var (coOwner, member) = (club.pen(1), club.pen(2))
    club.add(club.owner.grant(.owner, to: coOwner.id, lamport: 1))
    let invite = club.invite(uses: 1, lamport: 2)
    club.add(member.redeem(invite, with: club.secret, lamport: 3))
    #expect(club.rights.confirmations(by: coOwner.id, meeting: [], at: 0).isEmpty)
    #expect(club.rights.confirmations(by: member.id, meeting: [], at: 0).isEmpty)
    #expect(club.rights.confirmations(by: club.owner.id, meeting: [], at: 0).count == 1)
  }
}
