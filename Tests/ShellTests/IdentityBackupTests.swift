import Glibc
import Muster
import MusterBase
import MusterCore
import MusterCrypto
import MusterStore
import MusterWire
import Testing

/// Sealed backups of an identity with its channels (`muster identity`).
struct IdentityBackupTests {
  private let passphrase = "correct horse battery staple"

  /// A directory with an identity that owns the channel `lab` and has made an invite to it.
  private func owned() async throws -> StoreFixture {
    let fixture = StoreFixture()
    for verb in [Administration.Request.Verb.create, .invite] {
      var request = Administration.Request(verb)
      request.channel = "lab"
      _ = try await Administration.perform(request, data: fixture.path)
    }
    try await fixture.store().write([
      .identity(known("Anna", 7, verified: true), channel: id(fixture))
    ])
    return fixture
  }

  private func id(_ fixture: StoreFixture) async throws -> ChannelID {
    try #require(try await fixture.store().channels(named: "lab").first).id
  }

  private func shown(_ fixture: StoreFixture) async throws -> Administration.ChannelSummary? {
    var request = Administration.Request(.show)
    request.channel = "lab"
    return try await Administration.perform(request, data: fixture.path).channels.first
  }

  private func error(_ body: () async throws -> Void) async -> MusterError? {
    do { try await body() } catch {
      #expect(StoreFixture.isClear(error))
      return error as? MusterError
    }
    return nil
  }

  @Test func aRestoredIdentityOwnsWhatItOwned() async throws {
    let (old, new) = (try await owned(), StoreFixture())
    let backup = try await IdentityBackup.export(data: old.path, passphrase: passphrase)
    #expect(backup.summary.channels == ["lab"])
    #expect(backup.text.utf8.allSatisfy { $0 < 0x80 })
    #expect(backup.text.split(separator: "\n").allSatisfy { $0.utf8.count <= 64 })
    let summary = try await IdentityBackup.restore(
      backup.text, data: new.path, passphrase: passphrase)
    #expect(summary == backup.summary)
    let (before, after) = (try await shown(old), try await shown(new))
    #expect(after == before)
    #expect(after?.isOwner == true && after?.invites.count == 1)
    #expect(after?.members.contains { $0.name == "Anna" && $0.verified } == true)
    #expect(try new.read(new.path + "/identity") == old.read(old.path + "/identity"))
  }

  @Test func restoringTwiceAddsWhatIsMissingAndKeepsNewerKeys() async throws {
    let fixture = try await owned()
    let backup = try await IdentityBackup.export(data: fixture.path, passphrase: passphrase)
    var request = Administration.Request(.revoke)
    request.channel = "lab"
    request.member = try #require(Identity(seed: [UInt8](repeating: 1, count: 32))).id.key.hex
    _ = try await Administration.perform(request, data: fixture.path)
    var rename = Administration.Request(.rename)
    (rename.channel, rename.name) = ("lab", "renamed")
    _ = try await Administration.perform(rename, data: fixture.path)
    _ = try await IdentityBackup.restore(
      backup.text, data: fixture.path, passphrase: passphrase)
    let channels = try await fixture.store().channels()
    #expect(channels.map(\.name) == ["renamed"])
    #expect(channels.first?.keys.map(\.number) == [0, 1])
  }

  /// The others may have a newer key than the backup: changing this one would split the channel.
  @Test func aRestoredOwnerChangesTheKeyOnceItHasMetAMember() async throws {
    let (old, new) = (try await owned(), StoreFixture())
    let backup = try await IdentityBackup.export(data: old.path, passphrase: passphrase)
    _ = try await IdentityBackup.restore(backup.text, data: new.path, passphrase: passphrase)
    var request = Administration.Request(.revoke)
    request.channel = "lab"
    request.member = known("Anna", 7).key.key.hex
    let (path, unforced) = (new.path, request)
    // Nor does it after having been in the channel by itself, with an invite.
    for isJoining in [false, true] {
      if isJoining { try await join(new, by: old) }
      let refused = await error { _ = try await Administration.perform(unforced, data: path) }
      #expect(refused?.hint.contains("--force") == true)
      #expect(try await shown(new)?.epoch == 0)
    }
    request.isForced = true
    _ = try await Administration.perform(request, data: path)
    #expect(try await shown(new)?.epoch == 1)
  }

  /// Runs a node that meets nobody, with an invite that the identity in another directory makes.
  private func join(_ fixture: StoreFixture, by inviting: StoreFixture) async throws {
    var request = Administration.Request(.invite)
    request.channel = "lab"
    let reply = try await Administration.perform(request, data: inviting.path)
    let invite = try Invite(url: try #require(reply.invite))
    let configuration = fixture.configuration(.invite(invite))
    let node = try await MusterNode.start(configuration)
    await node.stop()
  }

  @Test func textAroundABackupDoesNoHarm() async throws {
    let (old, new) = (try await owned(), StoreFixture())
    let backup = try await IdentityBackup.export(data: old.path, passphrase: passphrase)
    let mailed =
      "Here it is:\r\n" + backup.text.split(separator: "\n").map { "  \($0) \r\n" }.joined() + "Bye"
    _ = try await IdentityBackup.restore(mailed, data: new.path, passphrase: passphrase)
    #expect(try await shown(new)?.isOwner == true)
  }

  @Test func whatIsNoBackupChangesNothing() async throws {
    let (old, new) = (try await owned(), StoreFixture())
    let text = try await IdentityBackup.export(data: old.path, passphrase: passphrase).text
    let lines = text.split(separator: "\n")
    var damaged = lines.map { String($0) }
    let middle = damaged[lines.count / 2]
    damaged[lines.count / 2] = (middle.hasPrefix("A") ? "B" : "A") + middle.dropFirst()
    let broken = [
      "", "-----BEGIN MUSTER IDENTITY-----", lines.dropLast().joined(separator: "\n"),
      lines.dropFirst().joined(separator: "\n"),
      (lines.prefix(1) + lines.suffix(1)).joined(separator: "\n"),
      damaged.joined(separator: "\n"),
    ]
    for text in broken {
      let error = await error {
        _ = try await IdentityBackup.restore(text, data: new.path, passphrase: passphrase)
      }
      #expect(error != nil, "\(text.prefix(80))")
    }
    let wrong = await error {
      _ = try await IdentityBackup.restore(text, data: new.path, passphrase: "wrong")
    }
    #expect(wrong?.message.contains("passphrase") == true)
    #expect(access(new.path, F_OK) != 0)
  }

  @Test func anotherIdentityIsNotReplaced() async throws {
    let (old, other) = (try await owned(), try await owned())
    let backup = try await IdentityBackup.export(data: old.path, passphrase: passphrase)
    let before = try other.read(other.path + "/identity")
    let error = await error {
      _ = try await IdentityBackup.restore(backup.text, data: other.path, passphrase: passphrase)
    }
    #expect(error?.message.contains("another identity") == true)
    #expect(try other.read(other.path + "/identity") == before)
    #expect(try await other.store().channels().count == 1)
  }

  @Test func aDirectoryWithoutAnIdentityOrWithANodeIsNotExported() async throws {
    let empty = StoreFixture()
    let error = await error {
      _ = try await IdentityBackup.export(data: empty.path, passphrase: passphrase)
    }
    #expect(error?.message.contains("no identity") == true)
    let used = try await owned()
    let lock = try #require(try DataDirectory.open(used.path))
    let refusal = await self.error {
      _ = try await IdentityBackup.export(data: used.path, passphrase: passphrase)
    }
    withExtendedLifetime(lock) {
      #expect(refusal?.message.contains("in use") == true)
    }
  }
}
