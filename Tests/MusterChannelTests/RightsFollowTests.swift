import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// Rights that follow redemptions and grants one by one are those that the whole document gives.
struct RightsFollowTests {
  private let guests = 1...12 as ClosedRange<UInt64>
  private let secrets = (901...903 as ClosedRange<UInt64>).map(testIdentity)

  /// A grant for one of the one-time keys; several grants for a key may differ in all they say.
  private func bearer(by author: inout Pen, _ prng: inout PRNG) -> (SignedEntry, Identity) {
    let secret = secrets[prng.below(secrets.count)]
    let roles: [Role] = prng.chance(0.05) ? [.owner] : [.presenter, .attendee, .consumer]
    let terms = Grant.Terms(
      epoch: UInt32(prng.below(10) == 0 ? 1 : 0), uses: UInt32(prng.below(4)),
      roleExpiresAt: prng.chance(0.2) ? 900 : 0)
    let grant = author.grant(
      roles[prng.below(roles.count)], to: secret.id, expiresAt: prng.chance(0.2) ? 800 : 0,
      form: .bearer(terms), lamport: UInt64(prng.below(100)) + 1)
    return (grant, secret)
  }

  /// A grant to a guest, or a confirmation of its use of an invite.
  private func grant(by author: inout Pen, _ prng: inout PRNG) -> SignedEntry {
    let guest = testIdentity(UInt64(prng.below(guests.count)) + 1).id
    let roles: [Role] = prng.chance(0.05) ? [.owner] : [.presenter, .attendee, .none]
    return author.grant(
      roles[prng.below(roles.count)], to: guest, expiresAt: prng.chance(0.2) ? 800 : 0,
      form: prng.chance(0.7) ? .byInvite(secrets[prng.below(secrets.count)].id) : .direct,
      lamport: UInt64(prng.below(100)) + 1)
  }

  /// Anything else that rights depend on.
  private func other(_ club: inout Club, _ deputy: inout Pen, _ prng: inout PRNG) -> SignedEntry {
    let lamport = UInt64(prng.below(100)) + 1
    let guest = testIdentity(UInt64(prng.below(12)) + 1).id
    let secret = secrets[prng.below(secrets.count)].id
    switch prng.below(3) {
    case 0:
      return prng.chance(0.5)
        ? bearer(by: &club.owner, &prng).0 : bearer(by: &deputy, &prng).0
    case 1: return club.owner.grant(.none, to: secret, lamport: lamport)
    default:
      return club.owner.epoch(
        1, removing: [guest, secret], keeping: prng.chance(0.5) ? [guest.key.prefix] : [],
        lamport: lamport)
    }
  }

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func theyAreThoseOfTheWholeDocument(seed: UInt64) {
    var prng = PRNG(seed: seed)
    var club = Club()
    var deputy = club.pen(50)
    club.add(club.owner.grant(.owner, to: deputy.id, lamport: 1))
    var rights = club.rights
    var (followed, steps) = (0, 0)
    for _ in 0..<80 {
      if prng.chance(0.1) {
        club.add(other(&club, &deputy, &prng))
      } else if prng.chance(0.3) {
        club.add(
          prng.chance(0.7) ? grant(by: &club.owner, &prng) : grant(by: &deputy, &prng))
      } else if prng.chance(0.1) {
        club.settle()
      } else {
        let (grant, secret) =
          prng.chance(0.8) ? bearer(by: &club.owner, &prng) : bearer(by: &deputy, &prng)
        var pen = club.pen(UInt64(prng.below(guests.count)) + 1)
        club.add(pen.redeem(grant, with: secret, lamport: UInt64(prng.below(100)) + 1))
      }
      // Sometimes several changes come at once.
      guard prng.chance(0.8) else { continue }
      steps += 1
      let before = rights
      guard let changed = rights.update(from: club.document) else { continue }
      followed += 1
      for guest in guests where !changed.contains(testIdentity(guest).id) {
        let id = testIdentity(guest).id
        for time in [0, 850, 950] as [UInt64] {
          #expect(rights.role(of: id, at: time) == before.role(of: id, at: time), "seed \(seed)")
        }
        #expect(rights.admissions[id] == before.admissions[id], "seed \(seed)")
      }
      #expect(rights.agrees(with: club.document), "seed \(seed)")
    }
    #expect(followed > steps / 4, "seed \(seed)")
  }

  /// What a key redeems, or an owner confirms, concerns that key alone, however many there are;
  /// and all others once the invite is used up.
  @Test func redemptionsAndConfirmationsConcernFew() {
    var club = Club()
    let invite = club.invite(uses: 3, lamport: 1)
    club.add(invite)
    var rights = club.rights
    for number in guests {
      var pen = club.pen(number)
      club.add(pen.redeem(invite, with: club.secret, lamport: 2))
      let changed = rights.update(from: club.document)
      #expect(changed == [pen.id])
    }
    func members() -> [UInt64] {
      guests.filter { rights.role(of: testIdentity($0).id, at: 0) == .presenter }
    }
    #expect(members() == Array(guests))
    for number in guests.prefix(3) {
      let guest = testIdentity(number).id
      club.add(
        club.owner.grant(
          .presenter, to: guest, form: .byInvite(club.secret.id), lamport: 2 + number))
      let changed = rights.update(from: club.document)
      #expect(changed?.contains(guest) == true && changed?.count == (number < 3 ? 1 : 10))
    }
    #expect(rights.agrees(with: club.document))
    #expect(members() == [1, 2, 3])
  }
}
