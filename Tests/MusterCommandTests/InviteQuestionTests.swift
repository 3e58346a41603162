import Muster
import MusterBase
import MusterCommand
import MusterCrypto
import MusterWire
import Testing

/// The question about an invite, before it is joined.
struct InviteQuestionTests {
  private func lines(
    _ invite: Invite, _ remembered: InviteQuestion.Remembered? = nil,
    change: (inout Configuration) -> Void = { _ in }
  ) throws -> String {
    var configuration = Configuration()
    (configuration.video, configuration.audio) = ("camera:/dev/video2", "mic")
    change(&configuration)
    return InviteQuestion.lines(try InviteDetails(invite), remembered, configuration)
      .joined(separator: "\n")
  }

  /// An invite to a created channel for a consumer.
  private func created() async throws -> Invite {
    let folder = try TemporaryDirectory(for: "test")
    defer { folder.remove(nodes: 1) }
    var request = Administration.Request(.create)
    request.channel = "crew"
    _ = try await Administration.perform(request, data: folder.data(of: 0))
    request = Administration.Request(.invite)
    request.channel = "crew"
    request.role = .consumer
    let reply = try await Administration.perform(request, data: folder.data(of: 0))
    return try Invite(url: try #require(reply.invite))
  }

  @Test func itSaysWhereAnInviteLeadsAndWhoMadeIt() async throws {
    let invite = try await created()
    let details = try InviteDetails(invite)
    let owner = try #require(details.creator)
    let fresh = try lines(invite)
    #expect(fresh.contains("crew, created channel \(details.id), new here"))
    #expect(fresh.contains("\(owner), who created the channel, whom you have not met"))
    #expect(fresh.contains("consumer") && fresh.contains("the role permits no sending"))
    let known = try lines(
      invite, .init(channel: "old crew", maker: "Gr\u{202E}ace", isVerified: true))
    #expect(known.contains("which you know as old crew") && known.contains("verified"))
    #expect(!known.unicodeScalars.contains("\u{202E}"))
  }

  @Test func nobodySignsAnOpenChannelsInvite() throws {
    let invite = Invite(
      name: "lab", genesis: nil, epoch: 0, key: [UInt8](repeating: 7, count: 32), oneTimeSeed: nil,
      grant: nil, peers: [], rendezvous: [])
    #expect(try lines(invite).contains("nobody says: the channel's key is enough"))
  }

  @Test func anInviteThatNoOwnerSignedIsDamaged() async throws {
    var invite = try await created()
    let other = try await created()
    invite.oneTimeSeed = other.oneTimeSeed
    #expect(throws: MusterError.self) { try InviteDetails(invite) }
    invite.grant = other.grant
    #expect(throws: MusterError.self) { try InviteDetails(invite) }
  }

  @Test func itSaysWhatWouldBeLive() throws {
    let invite = Invite(
      name: "lab", genesis: nil, epoch: 0, key: [UInt8](repeating: 7, count: 32), oneTimeSeed: nil,
      grant: nil, peers: [], rendezvous: [])
    #expect(
      try lines(invite).contains("nothing until you join its call; then camera:/dev/video2, micro"))
    #expect(
      try lines(invite) { $0.call = true }.contains("camera:/dev/video2, microphone, at once"))
    #expect(try lines(invite) { $0.answersCalls = true }.contains("as soon as somebody"))
    let muted = try lines(invite) {
      $0.call = true
      $0.videoMuted = true
    }
    #expect(muted.contains("microphone, at once") && !muted.contains("camera"))
    #expect(
      try lines(invite) {
        ($0.video, $0.audio) = (nil, nil)
      }.contains("no camera or microphone"))
  }
}
