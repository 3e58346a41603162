import Muster
import MusterBase
import MusterChannel
import MusterCrypto
import MusterStore
import MusterWire
import Testing

/// The commands `muster channel`, `invite` and `verify` while no node is running.
struct AdministrationTests {
  private let fixture = StoreFixture()

  @discardableResult
  private func perform(
    _ verb: Administration.Request.Verb, _ channel: String? = "lab",
    _ change: (inout Administration.Request) -> Void = { _ in }
  ) async throws -> Administration.Reply {
    var request = Administration.Request(verb)
    request.channel = channel
    change(&request)
    return try await Administration.perform(request, data: fixture.path)
  }

  /// The error that a request ends with.
  private func refusal(
    _ verb: Administration.Request.Verb, _ channel: String? = "lab",
    _ change: (inout Administration.Request) -> Void = { _ in }
  ) async throws -> MusterError {
    do { try await perform(verb, channel, change) } catch let error as MusterError {
      #expect(StoreFixture.isClear(error))
      return error
    }
    Issue.record("it was done")
    return MusterError("", hint: "")
  }

  private func member(_ number: UInt8) throws -> NodeID {
    try #require(Identity(seed: [UInt8](repeating: number, count: 32))).id
  }

  private func role(of member: NodeID) async throws -> String? {
    try await perform(.show).channels.first?.members.first { $0.key == member.key.hex }?.role
  }

  @Test func aCreatedChannelIsKept() async throws {
    let made = try await perform(.create) {
      $0.settings = ChannelSettings(callEndsWithInitiator: true, onlyPresentersSend: false)
    }
    let listed = try await perform(.list, nil)
    #expect(listed.channels.map(\.id) == made.channels.map(\.id))
    let shown = try #require(try await perform(.show).channels.first)
    #expect(shown.isCreated && shown.isOwner && shown.epoch == 0)
    #expect(shown.callEndsWithInitiator && !shown.onlyPresentersSend)
    let id = try #require(try DataDirectory.open(fixture.path)).identity().id
    #expect(shown.owner == id.key.hex)
    #expect(shown.members.map(\.role) == ["owner"])
  }

  @Test(arguments: ["", "two\nlines", "\u{1B}[31mred", String(repeating: "n", count: 65)])
  func aBadNameIsRefused(name: String) async throws {
    #expect(try await refusal(.create, name).kind == .usage)
    #expect(try await perform(.list, nil).channels.isEmpty)
  }

  @Test func unseenMessagesStayUnseen() async throws {
    let key = try #require(epochKey(0))
    let author = try #require(Identity(seed: [UInt8](repeating: 5, count: 32)))
    var channel = StoredChannel(id: key.key.channelID, name: "lab", createdAt: 1)
    channel.keys = [key]
    let message = Message(sentAt: 1, after: [], to: nil, content: Array("hello".utf8))
    let entry = SignedEntry.sign(
      Entry(author: author.id, sequence: 1, lamport: 1, body: .message(message)), by: author,
      in: channel.id)
    let store = try await fixture.store()
    try await store.write([
      .channel(channel), .keep(entry: entry.bytes, id: entry.id, channel: channel.id),
    ])
    await store.close()
    #expect(try await perform(.invite).invite != nil)
    #expect(try await fixture.store().undelivered(in: channel.id) == [entry.id])
  }

  @Test func aNameIsTakenOnce() async throws {
    try await perform(.create)
    #expect(try await refusal(.create).message.contains("already"))
    #expect(try await perform(.list, nil).channels.count == 1)
  }

  @Test(arguments: [
    Administration.Request.Verb.show, .grant, .revoke, .invite, .verify,
  ])
  func anUnknownChannelIsAClearError(verb: Administration.Request.Verb) async throws {
    try await perform(.create)
    let error = try await refusal(verb, "no\u{7}ne") { $0.member = "anna" }
    #expect(!error.message.contains("\u{7}"))
  }

  @Test func aGrantIsKeptAndARevocationChangesTheKey() async throws {
    try await perform(.create)
    let anna = try member(1)
    try await perform(.grant) {
      $0.member = anna.key.hex
      $0.role = .presenter
    }
    #expect(try await role(of: anna) == "presenter")
    // The short id suffices from here on, because the grant has made the member known.
    try await perform(.grant) {
      $0.member = anna.short
      $0.role = .consumer
    }
    #expect(try await role(of: anna) == "consumer")
    try await perform(.revoke) { $0.member = anna.short }
    #expect(try await role(of: anna) ?? "none" == "none")
    #expect(try await perform(.show).channels.first?.epoch == 1)
    let store = try await fixture.store()
    #expect(try await store.channels(named: "lab").last?.keys.map(\.number) == [0, 1])
  }

  @Test func anInviteHoldsTheKeyInForce() async throws {
    try await perform(.create)
    for epoch in 0..<3 {
      let reply = try await perform(.invite) {
        $0.role = .presenter
        $0.peers = ["10.0.0.1:4711"]
      }
      let invite = try Invite(url: try #require(reply.invite))
      #expect(invite.name == "lab")
      #expect(invite.epoch == UInt32(epoch))
      #expect(invite.peers == ["10.0.0.1:4711"])
      let key = try #require(ChannelKey(secret: invite.key))
      let stored = try #require(try await fixture.store().channels(named: "lab").last)
      #expect(stored.keys.last?.key.channelID == key.channelID)
      let genesis = try #require(invite.genesis.flatMap { SignedGenesis.verified($0) })
      #expect(genesis.channelID == stored.id)
      let grant = try SignedEntry.verified(try #require(invite.grant), in: stored.id)
      #expect(grant.entry.author == genesis.genesis.owner)
      let guest = try member(UInt8(10 + epoch))
      try await perform(.revoke) { $0.member = guest.key.hex }
    }
  }

  @Test func theOwnerAndUnknownMembersAreRefused() async throws {
    try await perform(.create)
    let owner = try #require(try DataDirectory.open(fixture.path)).identity().id
    #expect(try await refusal(.revoke) { $0.member = owner.key.hex }.message.contains("owner"))
    #expect(try await refusal(.grant) { $0.member = "nobody" }.message.contains("nobody"))
    #expect(try await refusal(.grant).kind == .usage)
  }

  @Test func anOpenChannelHasNoRoles() async throws {
    do {
      let store = try await fixture.store()
      let id = ChannelKey.fromName("lab").channelID
      try await store.write([.channel(StoredChannel(id: id, name: "lab", createdAt: 1))])
    }
    let anna = try member(1)
    for verb in [Administration.Request.Verb.grant, .revoke] {
      #expect(try await refusal(verb) { $0.member = anna.key.hex }.message.contains("open"))
    }
    #expect(try await perform(.show).channels.first?.isCreated == false)
  }

  @Test func aNameOfSeveralIsAmbiguous() async throws {
    try await perform(.create)
    let (anna, other) = (try member(1), try member(2))
    do {
      let store = try await fixture.store()
      let id = try #require(try await store.channels(named: "lab").last).id
      for key in [anna, other] {
        let identity = KnownIdentity(
          name: "anna", key: key, firstSeen: 1, lastSeen: 1, isVerified: false)
        try await store.write([.identity(identity, channel: id)])
      }
    }
    let error = try await refusal(.verify) { $0.member = "anna" }
    #expect(error.kind == .usage)
    #expect(error.message.contains(anna.short) && error.message.contains(other.short))
    let code = try await perform(.verify) { $0.member = anna.short }.code
    #expect(code?.filter(\.isNumber).count == VerificationCode.digits)
    // Showing the code does not confirm it.
    let before = try await perform(.show).channels.first?.members.filter(\.verified)
    #expect(before?.isEmpty == true)
    try await perform(.verify) {
      $0.member = anna.short
      $0.confirm = true
    }
    let verified = try await perform(.show).channels.first?.members.filter(\.verified)
    #expect(verified?.map(\.member) == [anna.short])
  }

  @Test func aMemberThatWasNeverSeenCannotBeConfirmed() async throws {
    try await perform(.create)
    let anna = try member(1)
    let error = try await refusal(.verify) {
      $0.member = anna.key.hex
      $0.confirm = true
    }
    #expect(error.message.contains("never seen"))
  }

  private func run(_ configuration: Configuration) async throws {
    let node = try await MusterNode.start(configuration)
    await node.stop()
  }

  /// A crafted invite to a known channel must not take its keys away.
  @Test func anInviteDoesNotReplaceWhatTheOwnerSaid() async throws {
    try await perform(.create)
    let reply = try await perform(.invite)
    var invite = try Invite(url: try #require(reply.invite))
    let known = try #require(try await fixture.store().channels(named: "lab").last).keys
    for epoch in [UInt32(0), 7] {
      invite.key = [UInt8](repeating: 9, count: 32)
      invite.epoch = epoch
      let configuration = fixture.configuration(.invite(invite))
      try await run(configuration)
      let kept = try #require(try await fixture.storeOnceFree().channels(named: "lab").last).keys
      #expect(kept.map(\.number) == known.map(\.number))
      #expect(kept.map(\.key.channelID) == known.map(\.key.channelID))
    }
  }

  /// The id of the channel that a node joins from this source.
  private func joined(
    _ source: Configuration.Channel.Source, _ name: String = "lab"
  ) async throws -> String? {
    let configuration = fixture.configuration(source, name)
    let node = try await MusterNode.start(configuration)
    let views = await node.channelViews()
    await node.stop()
    return views.first?.id.hash.hex
  }

  @Test func channelsOfOneNameAreNamedByTheirIDs() async throws {
    let first = try #require(try await perform(.create).channels.first?.id)
    let secret = ChannelKey.fromName("stands for a passphrase")
    let second = try #require(try await joined(.open(secret)))
    for verb in [Administration.Request.Verb.show, .grant, .invite, .rename, .forget] {
      let error = try await refusal(verb) { $0.name = "other" }
      #expect(error.message.contains(first.prefix(16)) && error.message.contains(second.prefix(16)))
      #expect(error.kind == .usage)
    }
    #expect(try await perform(.show, String(second.prefix(16))).channels.map(\.id) == [second])
    try await perform(.rename, second) { $0.name = "other" }
    #expect(try await perform(.show).channels.map(\.id) == [first])
    #expect(try await perform(.show, "other").channels.map(\.id) == [second])
    #expect(try await joined(.stored, "other") == second)
    #expect(try await refusal(.rename, "other") { $0.name = "lab" }.message.contains("already"))
    #expect(try await refusal(.rename, "other") { $0.name = "a\nb" }.kind == .usage)
    try await perform(.forget, "other")
    #expect(try await perform(.list, nil).channels.map(\.id) == [first])
    #expect(try await refusal(.show, "other").message.contains("other"))
  }

  @Test func aChannelInUseIsNeitherRenamedNorForgotten() async throws {
    try await perform(.create)
    try await refuseWhileInUse()
    #expect(try await perform(.list, nil).channels.map(\.name) == ["other"])
  }

  private func refuseWhileInUse() async throws {
    let configuration = fixture.configuration(.stored)
    let node = try await MusterNode.start(configuration)
    for verb in [Administration.Request.Verb.rename, .forget] {
      #expect(try await refusal(verb) { $0.name = "other" }.hint.contains("leave"))
    }
    // In its name, another channel cannot be told from it.
    let error = await #expect(throws: MusterError.self) {
      try await node.perform(.joinChannel(.init(channel: "lab", passphrase: "a secret of ours")))
    }
    #expect(error?.message.contains("another channel lab") == true)
    try await node.perform(.leaveChannel(channel: "lab"))
    try await perform(.rename) { $0.name = "other" }
    await node.stop()
  }

  @Test(.timeLimit(.minutes(1))) func manyCommandsAtOnceAreAllDone() async throws {
    let path = fixture.path
    let names = (0..<8).map { "channel \($0)" }
    await withTaskGroup(of: Void.self) { group in
      for name in names {
        group.addTask {
          var request = Administration.Request(.create)
          request.channel = name
          do { _ = try await Administration.perform(request, data: path) } catch {
            Issue.record(error)
          }
        }
      }
    }
    let listed = try await perform(.list, nil).channels.map(\.name)
    #expect(listed.sorted() == names)
  }
}
