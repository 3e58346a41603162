import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// Which entries the document of a created channel keeps, by the admissions of their authors.
struct AdmissionTests {
  @Test func anEntryNeedsTheRoleForIt() {
    var club = Club()
    let (consumer, presenter, outsider) = (club.pen(1), club.pen(2), club.pen(3))
    club.add(
      club.owner.grant(.consumer, to: consumer.id, lamport: 1),
      club.owner.grant(.presenter, to: presenter.id, lamport: 2))
    for (var pen, kinds) in [
      (outsider, []), (consumer, [.presence, .message, .joining]),
      (presenter, [.presence, .message, .joining, .claim, .end, .moderation]),
    ] as [(Pen, [EntryBody.Kind])] {
      for entry in Self.entries(of: &pen) {
        let isHeld = entry.entry.body.kind.map(kinds.contains) ?? false
        #expect(club.rights.admits(entry.entry) == isHeld)
      }
    }
  }

  /// The owner of the channel stands above everyone, and nobody moderates an equal.
  @Test func onlyMembersOfLowerRolesAreModerated() {
    var club = Club()
    let pens = (1...5).map { club.pen(UInt64($0)) }
    let roles: [Role] = [.consumer, .attendee, .presenter, .presenter, .owner]
    for (index, pen) in pens.enumerated() {
      // An expired role counts as well.
      club.add(
        club.owner.grant(
          roles[index], to: pen.id, expiresAt: index == 3 ? 10 : 0, lamport: UInt64(index) + 1))
    }
    func moderated(by author: NodeID) -> [Int] {
      pens.indices.filter { club.rights.moderates(author, pens[$0].id) }
    }
    #expect(pens.map { moderated(by: $0.id) } == [[], [], [0, 1], [0, 1], [0, 1, 2, 3]])
    #expect(moderated(by: club.owner.id) == [0, 1, 2, 3, 4])
    #expect(!club.rights.moderates(pens[4].id, club.owner.id))
    #expect(!club.rights.moderates(club.owner.id, club.owner.id))
    #expect(moderated(by: testIdentity(90).id) == [])
    #expect(club.rights.moderates(pens[2].id, testIdentity(90).id))
    let open = Rights(channel: testKey.channelID, genesis: nil)
    #expect(!open.moderates(pens[2].id, pens[0].id))
  }

  /// Clocks differ, documents must not.
  @Test func anExpiredRoleKeepsItsEntries() {
    var club = Club()
    var member = club.pen(1)
    club.add(club.owner.grant(.presenter, to: member.id, expiresAt: 10, lamport: 1))
    let entries = Self.entries(of: &member)
    club.add(entries)
    #expect(club.role(member, at: 10) == .none)
    #expect(club.settle() == 0)
    #expect(entries.allSatisfy { club.rights.admits($0.entry) })
  }

  @Test func theEntriesOfARemovedMemberGo() {
    var club = Club()
    var (gone, stays) = (club.pen(1), club.pen(2))
    club.add(
      club.owner.grant(.presenter, to: gone.id, lamport: 1),
      club.owner.grant(.presenter, to: stays.id, lamport: 2))
    let entries = Self.entries(of: &gone)
    club.add(entries + Self.entries(of: &stays))
    let count = club.document.count
    club.add(club.owner.grant(.none, to: gone.id, lamport: 9))
    #expect(club.settle() == entries.count)
    #expect(club.document.count == count - entries.count)
    #expect(club.document.checkInvariants().isEmpty)
    #expect(entries.allSatisfy { !club.rights.admits($0.entry) })
  }

  /// Members that have forgotten them, and been restarted since, would show its messages again.
  @Test func theMessagesOfARemovedMemberDoNotComeBackWithIt() {
    var club = Club()
    var member = club.pen(1)
    club.add(club.owner.grant(.presenter, to: member.id, lamport: 1))
    let before = member.sign(Entries.message("before"), lamport: 10)
    club.add(before, club.owner.epoch(1, removing: [member.id], lamport: 10))
    club.add(club.owner.grant(.consumer, to: member.id, lamport: 11))
    #expect(club.role(member) == .consumer)
    #expect(club.settle() == 1 && !club.rights.admits(before.entry))
    #expect(club.rights.admits(member.sign(Entries.message("after"), lamport: 11).entry))
  }

  @Test func aLowerRoleKeepsWhatItPermits() {
    var club = Club()
    var member = club.pen(1)
    club.add(club.owner.grant(.presenter, to: member.id, lamport: 1))
    club.add(Self.entries(of: &member))
    club.add(club.owner.grant(.consumer, to: member.id, lamport: 9))
    #expect(club.settle() == 3)
    #expect(club.document.all(.claim).isEmpty && club.document.all(.end).isEmpty)
    #expect(club.document.newest(.presence, of: member.id) != nil)
  }

  /// Those who came by one invite count as one, whether they are confirmed or not.
  @Test func thePrincipalOfAGuestIsItsInvite() {
    var club = Club()
    var (provisional, confirmed) = (club.pen(1), club.pen(2))
    let direct = club.pen(3)
    let invite = club.invite(uses: 2, lamport: 1)
    club.add(confirmed.redeem(invite, with: club.secret, lamport: 2))
    club.confirmUses(lamport: 3)
    club.add(
      provisional.redeem(invite, with: club.secret, lamport: 4),
      club.owner.grant(.consumer, to: direct.id, lamport: 5))
    let admissions = club.rights.admissions
    #expect(admissions[provisional.id]?.principal == club.secret.id)
    #expect(admissions[confirmed.id]?.principal == club.secret.id)
    #expect(admissions[direct.id]?.principal == direct.id)
    #expect(admissions[club.owner.id]?.principal == club.owner.id)
    #expect(admissions[club.pen(4).id] == nil)
  }

  /// A used-up invite must not fill the document with redemptions: of the keys that come by it,
  /// those that the owner has confirmed stay, the same on every node.
  @Test(arguments: 1...10 as ClosedRange<UInt64>)
  func redemptionsBeyondTheUsesAreNotKept(seed: UInt64) {
    var prng = PRNG(seed: seed)
    var first = Club()
    let invite = first.invite(uses: 2, lamport: 1)
    var pens = (1...12).map { first.pen($0) }
    let redemptions = pens.indices.map {
      pens[$0].redeem(invite, with: first.secret, lamport: 3)
    }
    var (second, third) = (first, first)
    for redemption in redemptions where first.rights.admits(redemption.entry) {
      first.add(redemption)
      first.settle()
    }
    #expect(first.document.all(.redemption).count == 12, "seed \(seed)")
    let met = prng.permuted(pens.map(\.id))
    let confirmed = first.confirmUses(meeting: met, lamport: 5)
    #expect(confirmed.sorted() == met.prefix(2).sorted(), "seed \(seed)")
    first.settle()
    for redemption in prng.permuted(redemptions) where second.rights.admits(redemption.entry) {
      second.add(redemption)
      second.settle()
    }
    let grants = first.document.all(.grant)
    second.add(grants)
    second.settle()
    third.add(grants)
    for redemption in prng.permuted(redemptions) where third.rights.admits(redemption.entry) {
      third.add(redemption)
      third.settle()
    }
    #expect(first.document.all(.redemption).count == 2, "seed \(seed)")
    for other in [second, third] {
      #expect(first.document.digest == other.document.digest, "seed \(seed)")
    }
    let late = club(first, redeems: invite, as: 13)
    #expect(!first.rights.admits(late.entry, from: late.entry.author), "seed \(seed)")
  }

  @Test func redemptionsOfWhatGivesNothingAreNotKept() {
    var club = Club()
    var (early, late) = (club.pen(1), club.pen(2))
    let invite = club.invite(lamport: 1)
    club.add(early.redeem(invite, with: club.secret, lamport: 2))
    club.add(club.invite(.none, lamport: 3))
    #expect(club.settle() == 1)
    #expect(!club.rights.admits(late.redeem(invite, with: club.secret, lamport: 4).entry))

    var removed = Club()
    let second = removed.invite(lamport: 1)
    removed.add(removed.owner.grant(.none, to: early.id, lamport: 5))
    #expect(!removed.rights.admits(early.redeem(second, with: removed.secret, lamport: 9).entry))
    removed.add(removed.owner.epoch(1, removing: [early.id], lamport: 6))
    #expect(!removed.rights.admits(late.redeem(second, with: removed.secret, lamport: 9).entry))
  }

  /// What proves an equivocation must be admitted by newcomers, too: by those that come after the
  /// author, and by those that come after the author's removal.
  @Test(arguments: [false, true], [nil, Role.consumer, Role.none])
  func newcomersAgreeOnQuarantines(isConfirmed: Bool, later: Role?) {
    var club = Club()
    var culprit = club.pen(1)
    let invite = club.invite(lamport: 1)
    club.add(culprit.redeem(invite, with: club.secret, lamport: 2))
    if isConfirmed { club.confirmUses(lamport: 3) }
    let claims = [1, 2].map { call in
      SignedEntry.sign(
        Entry(author: culprit.id, sequence: 99, lamport: 4, body: Entries.claim(call)),
        by: culprit.identity, in: culprit.channel)
    }
    club.add(claims)
    #expect(club.refusal(culprit) == .equivocated)
    if let later { club.add(club.owner.grant(later, to: culprit.id, lamport: 5)) }
    club.settle()
    #expect(club.document.quarantined == (later == nil ? [culprit.id] : []))

    var newcomer = Club()
    var entries = EntryBody.Kind.allCases.flatMap { club.document.all($0) } + claims
    while let index = entries.firstIndex(where: { newcomer.rights.admits($0.entry) }) {
      newcomer.add(entries.remove(at: index))
      newcomer.settle()
    }
    #expect(newcomer.document.digest == club.document.digest)
    #expect(newcomer.document.checkInvariants().isEmpty)
  }

  private func club(_ club: Club, redeems invite: SignedEntry, as number: UInt64) -> SignedEntry {
    var pen = club.pen(number)
    return pen.redeem(invite, with: club.secret, lamport: 3)
  }

  private static func entries(of pen: inout Pen) -> [SignedEntry] {
    [
      pen.sign(Entries.presence("name"), lamport: 3),
      pen.sign(Entries.message("text"), lamport: 4),
      pen.claim(1, lamport: 5), pen.end(1, lamport: 6), pen.joining(1, .met, lamport: 7),
      pen.moderation(1, of: testIdentity(99).id, .remove, lamport: 8),
    ]
  }
}
