import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// Rights follow from the entries alone; every failure names its seed.
struct RightsPropertyTests {
  private func randomEntries(_ club: inout Club, _ prng: inout PRNG) -> [SignedEntry] {
    var pens = (1...5).map { club.pen(UInt64($0)) }
    var entries: [SignedEntry] = []
    var last: SignedEntry?
    for lamport in 1...30 as ClosedRange<UInt64> {
      let role = Role.allCases[prng.below(Role.allCases.count)]
      let expiresAt = prng.chance(0.3) ? UInt64(prng.below(100)) : 0
      let subject = pens[prng.below(pens.count)].id
      let author = prng.below(pens.count)
      switch prng.below(7) {
      case 0, 1:
        entries.append(
          club.owner.grant(role, to: subject, expiresAt: expiresAt, lamport: lamport))
      case 2, 3:
        entries.append(
          pens[author].grant(role, to: subject, expiresAt: expiresAt, lamport: lamport))
      case 4, 5:
        let epoch = UInt32(prng.below(3))
        let invite = club.invite(role, expiresAt: expiresAt, epoch: epoch, lamport: lamport)
        entries.append(pens[author].redeem(invite, with: club.secret, lamport: lamport))
      default:
        let number = UInt32(prng.below(3)) + 1
        let change = club.owner.epoch(
          number, after: number == 1 ? nil : last, removing: prng.chance(0.5) ? [subject] : [],
          lamport: lamport)
        last = change
        entries.append(change)
      }
    }
    return entries
  }

  /// The roles and refusals of all members at several times, and the epochs.
  private func summary(_ rights: Rights) -> [String] {
    let everyone = ([100] + Array(1...5)).map { testIdentity($0).id }
    var lines = [0, 30, 60, 1000].flatMap { (time: UInt64) in
      everyone.map { member in
        let refusal = rights.refusal(of: member, at: time).map { "\($0)" } ?? "member"
        return "\(time) \(member) \(rights.role(of: member, at: time)) \(refusal)"
      }
    }
    lines.append("epochs \(rights.epochs.map(\.id.hex)) next \(rights.nextExpiry(after: 0) ?? 0)")
    return lines
  }

  @Test(arguments: 1...40 as ClosedRange<UInt64>)
  func theOrderOfArrivalMakesNoDifference(seed: UInt64) {
    var prng = PRNG(seed: seed)
    let start = Club()
    var writer = start
    let entries = randomEntries(&writer, &prng)
    var all = start
    all.add(entries)
    let expected = summary(all.rights)
    for _ in 0..<4 {
      var club = start
      for entry in prng.permuted(entries) {
        // Some entries arrive twice within one update of the rights.
        club.add(prng.chance(0.3) ? [entry, entry] : [entry])
      }
      #expect(summary(club.rights) == expected, "seed \(seed)")
    }
  }

  /// Entries of members without the right to grant change nothing for anyone else.
  @Test(arguments: 1...40 as ClosedRange<UInt64>)
  func grantsOfNonMembersDoNotCount(seed: UInt64) {
    var prng = PRNG(seed: seed)
    var club = Club()
    let entries = randomEntries(&club, &prng)
    club.add(entries)
    let before = summary(club.rights)
    var outsider = club.pen(50)
    for number in 1...10 as ClosedRange<UInt64> {
      let victim = testIdentity(number <= 5 ? number : 100).id
      let role = Role.allCases[prng.below(Role.allCases.count)]
      let lamport = 31 + UInt64(prng.below(1000))
      club.add(
        outsider.grant(role, to: victim, lamport: lamport),
        outsider.epoch(1, removing: [victim], lamport: lamport))
      let forged = outsider.grant(
        .owner, to: club.secret.id, form: .bearer(Grant.Terms(epoch: 0, uses: 0)), lamport: 1)
      club.add(outsider.redeem(forged, with: club.secret, lamport: lamport))
    }
    #expect(summary(club.rights) == before, "seed \(seed)")
    #expect(club.role(outsider) == .none, "seed \(seed)")
  }

  /// An owner by grant never makes another owner, whatever it signs.
  @Test(arguments: 1...40 as ClosedRange<UInt64>)
  func ownersComeFromTheFirstOwnerAlone(seed: UInt64) {
    var prng = PRNG(seed: seed)
    var club = Club()
    let entries = randomEntries(&club, &prng)
    club.add(entries)
    for number in 1...5 as ClosedRange<UInt64> where club.role(club.pen(number)) == .owner {
      let member = testIdentity(number).id
      let isNamed = entries.contains { entry in
        switch entry.entry.body {
        case .grant(let grant):
          entry.entry.author == club.owner.id && grant.subject == member && grant.role == .owner
        case .redemption: entry.entry.author == member
        default: false
        }
      }
      #expect(isNamed, "seed \(seed), member \(number)")
    }
  }
}
