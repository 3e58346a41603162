import Glibc
import Muster
import MusterBase
import MusterCrypto
import MusterStore
import MusterWire
import Testing

/// Which channel a node joins: a key or an invite decides, a name alone means what is remembered.
struct ChannelOpeningTests {
  private let fixture = StoreFixture()
  private let secret = ChannelKey.fromName("stands for a passphrase")

  /// A node's channels, and the warnings of its start.
  private struct Opened {
    var channels: [MusterNode.ChannelView]
    var warnings: [String]
    var ready: EventRecord
  }

  private func open(
    _ source: Configuration.Channel.Source, _ name: String = "lab"
  ) async throws -> Opened {
    let configuration = fixture.configuration(source, name)
    let node = try await MusterNode.start(configuration)
    let events = node.events()
    let channels = await node.channelViews()
    await node.stop()
    var warnings: [String] = []
    for await event in events {
      if case .warning(let warning) = event.event { warnings.append("\(warning)") }
    }
    return Opened(
      channels: channels, warnings: warnings, ready: node.readyEvent(page: nil))
  }

  /// The id of the channel that a node joins from this source, in full.
  private func joined(
    _ source: Configuration.Channel.Source, _ name: String = "lab"
  ) async throws -> String? {
    try await open(source, name).channels.first?.id.hash.hex
  }

  private func isCreated(from source: Configuration.Channel.Source) async throws -> Bool {
    try #require(try await open(source).channels.first).isCreated
  }

  private func refusal(
    _ source: Configuration.Channel.Source, _ name: String = "lab"
  ) async throws -> MusterError {
    do { _ = try await open(source, name) } catch let error as MusterError {
      #expect(StoreFixture.isClear(error))
      return error
    }
    Issue.record("it was joined")
    return MusterError("", hint: "")
  }

  /// An invite to a created channel of somebody else, which anyone can name as they like, and the
  /// channel's id.
  private func foreignInvite(to name: String = "lab") async throws -> (Invite, ChannelID) {
    let elsewhere = StoreFixture()
    var request = Administration.Request(.create)
    request.channel = name
    _ = try await Administration.perform(request, data: elsewhere.path)
    request = Administration.Request(.invite)
    request.channel = name
    let reply = try await Administration.perform(request, data: elsewhere.path)
    let invite = try Invite(url: try #require(reply.invite))
    let id = try #require(try await elsewhere.storeOnceFree().channels(named: name).first).id
    return (invite, id)
  }

  // MARK: A key decides

  /// One click on a link must not send the camera of those who have a passphrase elsewhere.
  @Test func aSecretIsNotThatOfAnothersChannelOfTheSameName() async throws {
    let (invite, foreign) = try await foreignInvite()
    #expect(try await isCreated(from: .invite(invite)))
    // A secret that was secret may be meant for another channel.
    let error = try await refusal(.openUnlessCreated(secret))
    #expect(error.message.contains("\(foreign)") && error.message.contains("\(secret.channelID)"))
    #expect(error.kind == .usage)
    // One that was given for this channel is not, and from then on neither is the secret one.
    for source in [
      Configuration.Channel.Source.open(secret), .openUnlessCreated(secret),
    ] {
      let opened = try await open(source)
      #expect(opened.channels.map(\.id) == [secret.channelID])
      #expect(opened.warnings.contains { $0.contains("\(foreign)") }, "\(opened.warnings)")
    }
    let ambiguous = try await refusal(.stored)
    #expect(ambiguous.message.contains("\(foreign)"))
    #expect(try await joined(.stored, "\(foreign)") == foreign.hash.hex)
  }

  @Test func anExportedSecretIsNotForAChannelThatWasCreatedHere() async throws {
    var request = Administration.Request(.create)
    request.channel = "lab"
    _ = try await Administration.perform(request, data: fixture.path)
    let opened = try await open(.openUnlessCreated(secret))
    #expect(opened.channels.first?.isCreated == true)
    #expect(opened.warnings.contains { $0.contains("was created here") })
    #expect(try await !isCreated(from: .open(secret)), "given for this channel")
    #expect(try await !isCreated(from: .openUnlessCreated(secret)))
  }

  @Test func anInviteDoesNotTakeTheNameOfARememberedChannel() async throws {
    let (invite, foreign) = try await foreignInvite()
    for (source, remembered) in [
      (Configuration.Channel.Source.storedOrPublic, ChannelKey.fromName("lab").channelID),
      (.open(secret), secret.channelID),
    ] {
      #expect(try await joined(source) == remembered.hash.hex)
      let error = try await refusal(.invite(invite))
      #expect(error.message.contains("\(foreign)") && error.message.contains("\(remembered)"))
      #expect(try await fixture.storeOnceFree().channel(foreign) == nil)
      #expect(try await joined(.openUnlessCreated(secret)) == secret.channelID.hash.hex)
    }
    var request = Administration.Request(.rename)
    request.channel = "\(secret.channelID)"
    request.name = "ours"
    _ = try await Administration.perform(request, data: fixture.path)
    try await fixture.storeOnceFree().write([.forgetChannel(ChannelKey.fromName("lab").channelID)])
    #expect(try await joined(.invite(invite)) == foreign.hash.hex)
    #expect(try await joined(.open(secret)) == secret.channelID.hash.hex)
  }

  @Test func aNewSecretOfARememberedChannelIsSaidOnce() async throws {
    #expect(try await open(.open(secret)).warnings.isEmpty)
    let other = ChannelKey.fromName("stands for a misspelt passphrase")
    let warnings = try await open(.open(other)).warnings
    #expect(warnings.count == 1 && warnings[0].contains("\(secret.channelID)"), "\(warnings)")
    #expect(try await open(.open(other)).warnings.isEmpty)
    #expect(try await open(.open(secret)).warnings.isEmpty)
  }

  /// Members exclude somebody from an open channel by agreeing on a new passphrase.
  @Test func anExportedPassphraseReplacesThatOfAStoredOpenChannel() async throws {
    let former = [UInt8](repeating: 9, count: 32)
    let invite = Invite(
      name: "lab", genesis: nil, epoch: 0, key: former, oneTimeSeed: nil, grant: nil, peers: [],
      rendezvous: [])
    #expect(try await !isCreated(from: .invite(invite)))
    #expect(try await fixture.storeOnceFree().channels(named: "lab").last?.keys.count == 1)
    #expect(try await !isCreated(from: .openUnlessCreated(secret)))
    let stored = try await fixture.storeOnceFree().channels().map(\.id)
    #expect(stored.contains(secret.channelID))
  }

  /// Its key follows from its name and is not stored.
  @Test func anInviteToAKnownPublicChannelIsTaken() async throws {
    let key = ChannelKey.fromName("lab")
    let invite = Invite(
      name: "lab", genesis: nil, epoch: 0, key: key.withSecret { Array($0) }, oneTimeSeed: nil,
      grant: nil, peers: [], rendezvous: [])
    for source in [Configuration.Channel.Source.storedOrPublic, .invite(invite), .storedOrPublic] {
      #expect(try await !isCreated(from: source))
    }
    #expect(try await fixture.storeOnceFree().channels(named: "lab").map(\.id) == [key.channelID])
  }

  /// Its maker chose it, and hears no more of this node than the invite's channel.
  @Test func aRendezvousHearsNothingOfAChannelThatWasLeft() async throws {
    let server = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
    defer { close(server) }
    var bound = sockaddr_in()
    bound.sin_family = sa_family_t(AF_INET)
    bound.sin_addr.s_addr = inet_addr("127.0.0.1")
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    _ = withUnsafeMutablePointer(to: &bound) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(server, address, size) + getsockname(server, address, &size)
      }
    }
    let invite = Invite(
      name: "theirs", genesis: nil, epoch: 0, key: [UInt8](repeating: 9, count: 32),
      oneTimeSeed: nil, grant: nil, peers: [],
      rendezvous: ["127.0.0.1:\(UInt16(bigEndian: bound.sin_port))"])
    var configuration = Configuration()
    configuration.isEphemeral = true
    configuration.channels = [.init(name: "ours", source: .open(secret))]
    configuration.interfaces = ["lo"]
    configuration.lan = false
    let node = try await MusterNode.start(configuration)
    try await node.join(.init(name: "theirs", source: .invite(invite)))
    #expect(Self.hears(server, within: 10_000))
    try await node.leave(channelNamed: "theirs")
    // Skips those on their way; unanswered hellos come every second or so at first.
    while Self.hears(server, within: 100) {}
    #expect(!Self.hears(server, within: 2500))
    await node.stop()
  }

  private static func hears(_ socket: Int32, within milliseconds: Int32) -> Bool {
    var entry = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
    guard poll(&entry, 1, milliseconds) == 1 else { return false }
    var bytes = [UInt8](repeating: 0, count: 2048)
    return recv(socket, &bytes, bytes.count, 0) > 0
  }

  // MARK: A name means what is remembered

  /// The passphrase is needed once; without it, the name never means the channel that anyone with
  /// the name may join.
  @Test func aNameMeansTheRememberedChannel() async throws {
    let everyones = ChannelKey.fromName("lab").channelID.hash.hex
    #expect(try await joined(.storedOrPublic) == everyones)
    #expect(try await joined(.open(secret)) == secret.channelID.hash.hex)
    #expect(try await joined(.storedOrPublic) == secret.channelID.hash.hex)
    #expect(try await joined(.storedOrPublic, everyones) == everyones)
    // A directory of an earlier version has the channel without its key.
    do {
      let store = try await fixture.storeOnceFree()
      try await store.write([.forgetChannel(secret.channelID)])
      try await store.write([
        .channel(StoredChannel(id: secret.channelID, name: "lab", createdAt: 1))
      ])
    }
    let error = await #expect(throws: MusterError.self) {
      _ = try await joined(.storedOrPublic)
    }
    #expect(error?.hint.contains("--passphrase") == true)
  }

  /// A program that names a channel must not end up where anyone can listen.
  @Test func aStoredChannelIsNeverThePublicOne() async throws {
    #expect(try await refusal(.stored).message.contains("no channel lab is remembered"))
    _ = try await open(.storedOrPublic)
    #expect(try await refusal(.stored).message.contains("no channel lab is remembered"))
    _ = try await open(.open(secret))
    #expect(try await joined(.stored) == secret.channelID.hash.hex)
  }

  @Test func anIDIsNoName() async throws {
    let id = "0123456789abcdef"
    #expect(try await refusal(.storedOrPublic, id).message.contains("is remembered"))
    #expect(try await refusal(.open(secret), id).message.contains("an id"))
  }

  @Test func readyTellsChannelsApart() async throws {
    let (invite, foreign) = try await foreignInvite()
    let created = try await open(.invite(invite)).ready
    let plain = try await open(.open(secret)).ready
    #expect(
      created.json.text.contains(
        #""joined":[{"channel":"lab","id":"\#(foreign)","kind":"created"}]"#))
    #expect(
      plain.json.text.contains(
        #""joined":[{"channel":"lab","id":"\#(secret.channelID)","kind":"open"}]"#))
  }
}
