import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// The roles that have each capability, written out independently of the code under test: one line
/// of the table for each capability.
struct RightsTableTests {
  private struct Line {
    var capability: Capability
    var roles: [Role]
  }

  private let table = [
    Line(capability: .receive, roles: [.consumer, .attendee, .presenter, .owner]),
    Line(capability: .joinCall, roles: [.consumer, .attendee, .presenter, .owner]),
    Line(capability: .sendText, roles: [.consumer, .attendee, .presenter, .owner]),
    Line(capability: .sendAudio, roles: [.attendee, .presenter, .owner]),
    Line(capability: .sendVideo, roles: [.attendee, .presenter, .owner]),
    Line(capability: .startCall, roles: [.presenter, .owner]),
    Line(capability: .share, roles: [.presenter, .owner]),
    Line(capability: .handOver, roles: [.presenter, .owner]),
    Line(capability: .moderate, roles: [.presenter, .owner]),
    Line(capability: .grant, roles: [.owner]),
  ]

  @Test func everyRoleMayDoWhatItsLineSays() {
    #expect(table.map(\.capability) == Capability.allCases)
    for line in table {
      for role in Role.allCases {
        let isAllowed = line.capability.isAllowed(to: role, in: ChannelSettings())
        #expect(isAllowed == line.roles.contains(role), "\(line.capability), \(role)")
      }
    }
  }

  @Test func attendeesOnlyListenIfOnlyPresentersSend() {
    let settings = ChannelSettings(onlyPresentersSend: true)
    for line in table {
      for role in Role.allCases {
        let isMedia = line.capability == .sendAudio || line.capability == .sendVideo
        let expected = line.roles.contains(role) && !(isMedia && role == .attendee)
        #expect(
          line.capability.isAllowed(to: role, in: settings) == expected,
          "\(line.capability), \(role)")
      }
    }
  }

  @Test func inAnOpenChannelEveryoneIsAPresenter() {
    var rights = Rights(channel: testKey.channelID, genesis: nil)
    rights.update(from: Document(channel: testKey.channelID))
    let anyone = testIdentity(1).id
    #expect(rights.isOpen)
    #expect(rights.role(of: anyone, at: 5) == .presenter)
    #expect(rights.refusal(of: anyone, at: 5) == nil)
    #expect(rights.may(.startCall, anyone, at: 5))
    #expect(!rights.may(.grant, anyone, at: 5))
    #expect(rights.currentEpoch == 0 && rights.epochs.isEmpty)
    #expect(rights.nextExpiry(after: 0) == nil)
    #expect(rights.members(at: 5).isEmpty)
  }

  @Test func rightsGoByTheRoleAndTheSettingsOfTheGenesis() {
    var club = Club(settings: ChannelSettings(onlyPresentersSend: true))
    let (attendee, presenter, outsider) = (club.pen(1), club.pen(2), club.pen(3))
    club.add(
      club.owner.grant(.attendee, to: attendee.id, lamport: 1),
      club.owner.grant(.presenter, to: presenter.id, lamport: 2))
    #expect(!club.rights.may(.sendAudio, attendee.id, at: 0))
    #expect(club.rights.may(.joinCall, attendee.id, at: 0))
    #expect(club.rights.may(.sendAudio, presenter.id, at: 0))
    #expect(Capability.allCases.allSatisfy { club.rights.may($0, club.owner.id, at: 0) })
    #expect(!Capability.allCases.contains { club.rights.may($0, outsider.id, at: 0) })
  }
}
