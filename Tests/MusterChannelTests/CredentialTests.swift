import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// What nodes show each other to prove that they are members.
struct CredentialTests {
  /// What an owner, another one (7) and a member (8) of a club have signed.
  enum Past: CaseIterable {
    case granted
    case grantedByAnother
    case invited
    case invitedByAnother
    case confirmedAfterAnInviteOfAnother
    /// The newest grants of the member do not count any more.
    case grantedByAFormerOwner
    /// Only the channel's owner takes the role of an owner away.
    case removedByAnEqual

    func entries(_ club: inout Club) -> [SignedEntry] {
      var (another, member) = (club.pen(7), club.pen(8))
      let appointed = club.owner.grant(.owner, to: another.id, lamport: 1)
      func invite(_ pen: inout Pen) -> SignedEntry {
        pen.grant(
          .attendee, to: club.secret.id, form: .bearer(Grant.Terms(epoch: 0, uses: 1)), lamport: 2)
      }
      switch self {
      case .granted: return [club.owner.grant(.attendee, to: member.id, lamport: 2)]
      case .grantedByAnother:
        return [appointed, another.grant(.attendee, to: member.id, lamport: 2)]
      case .invited: return [member.redeem(invite(&club.owner), with: club.secret, lamport: 3)]
      case .invitedByAnother:
        return [appointed, member.redeem(invite(&another), with: club.secret, lamport: 3)]
      case .confirmedAfterAnInviteOfAnother:
        let grant = another.grant(
          .attendee, to: member.id, form: .byInvite(club.secret.id), lamport: 4)
        return [appointed, member.redeem(invite(&another), with: club.secret, lamport: 3), grant]
      case .grantedByAFormerOwner:
        return [
          appointed, club.owner.grant(.attendee, to: member.id, lamport: 2),
          another.grant(.presenter, to: member.id, lamport: 3),
          another.grant(.none, to: member.id, lamport: 4),
          club.owner.grant(.attendee, to: another.id, lamport: 5),
        ]
      case .removedByAnEqual:
        return [
          appointed, club.owner.grant(.owner, to: member.id, lamport: 2),
          another.grant(.none, to: member.id, lamport: 3),
          another.grant(.none, to: member.id, lamport: 4),
        ]
      }
    }
  }

  private func state(_ number: UInt64, in club: Club, _ entries: [SignedEntry] = []) -> ChannelState
  {
    var setup = ChannelState.Setup(
      identity: testIdentity(number), channel: club.genesis.channelID, genesis: club.genesis,
      name: "node", bootID: 1, entropy: .seeded(number), seed: number)
    setup.entries = entries
    var state = ChannelState(setup)
    _ = state.enter(at: seconds(1))
    return state
  }

  @Test(arguments: Past.allCases)
  func credentialsGiveAMemberItsRoleAtANewcomer(past: Past) throws {
    var club = Club()
    let member = club.pen(8).id
    let knowing = state(5, in: club, past.entries(&club))
    try #require(knowing.role(of: member) > .none)
    var newcomer = state(6, in: club)
    for bytes in knowing.credentials(of: member) {
      #expect(newcomer.isCredential(bytes, of: member) && !newcomer.contains(bytes))
      #expect(newcomer.receiveCredential(bytes, from: member, at: seconds(2)).refusal == nil)
      #expect(newcomer.contains(bytes))
    }
    #expect(newcomer.role(of: member) == knowing.role(of: member))
    #expect(knowing.credentials(of: member).count <= 5)
  }

  @Test func aRedemptionOfAnExpiredInviteIsNotTaken() {
    var club = Club()
    var member = club.pen(8)
    let invite = club.invite(expiresAt: 100, lamport: 1)
    let redemption = member.redeem(invite, with: club.secret, lamport: 2)
    var newcomer = state(6, in: club)
    newcomer.setWallClock(offsetMilliseconds: 101_000, at: seconds(1))
    let taken = newcomer.receiveCredential(redemption.bytes, from: member.id, at: seconds(2))
    #expect(taken.refusal == .expired && !newcomer.contains(redemption.bytes))
    #expect(!newcomer.knows(member.id))
  }

  @Test func onlyWhatMayProveARoleIsACredential() {
    var club = Club()
    var (member, other) = (club.pen(8), club.pen(9))
    let invite = club.invite(lamport: 1)
    let newcomer = state(6, in: club)
    let others: [SignedEntry] = [
      member.sign(.message(Message(sentAt: 0, after: [], to: nil, content: [1])), lamport: 1),
      member.sign(Entries.presence("eight"), lamport: 2),
      club.owner.grant(.attendee, to: other.id, lamport: 1),
      club.owner.epoch(1, removing: [member.id], lamport: 2),
      other.redeem(invite, with: club.secret, lamport: 3),
      // Of an author that is no owner.
      other.grant(.attendee, to: member.id, lamport: 3),
      other.grant(.owner, to: other.id, lamport: 4),
      member.redeem(
        other.grant(
          .attendee, to: club.secret.id, form: .bearer(Grant.Terms(epoch: 0, uses: 1)), lamport: 2),
        with: club.secret, lamport: 3),
    ]
    for entry in others {
      #expect(!newcomer.isCredential(entry.bytes, of: member.id), "\(entry.entry)")
    }
    #expect(
      newcomer.isCredential(
        member.redeem(invite, with: club.secret, lamport: 4).bytes, of: member.id))
    #expect(!newcomer.isCredential([], of: member.id))
  }
}
