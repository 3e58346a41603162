import Glibc
import Muster
import MusterBase
import MusterCore
import MusterCrypto
import MusterStore
import Testing

struct StoreTests {
  private let fixture = StoreFixture()
  private let channel = ChannelID(bytes32(1))

  private func stored(_ id: Int, _ name: String, at seconds: UInt64) -> StoredChannel {
    StoredChannel(id: ChannelID(bytes32(id)), name: name, createdAt: seconds)
  }

  @Test func everythingOfAChannelComesBack() async throws {
    var made = stored(1, "lab \u{1F4E1}", at: 1_700_000_000)
    made.genesis = [1, 2, 3]
    made.keys = [epochKey(0), epochKey(70_000), epochKey(2)].compactMap { $0 }
    made.credential = StoredChannel.InviteCredential(grant: [4, 5], seed: [6])
    made.bootstrapAddresses = ["10.0.0.1:4711", "[fe80::1%eth0]:4711"]
    made.rendezvous = ["example.org:1"]
    try await fixture.store().write([.channel(made)])
    let read = try #require(try await fixture.store().channel(channel))
    #expect(read.id == made.id)
    #expect(read.name == made.name)
    #expect(read.genesis == made.genesis)
    #expect(read.keys.map(\.number) == [0, 2, 70_000])
    #expect(read.keys.map(\.key.channelID) == [0, 2, 1].map { made.keys[$0].key.channelID })
    #expect(read.createdAt == made.createdAt)
    #expect(read.credential?.grant == [4, 5])
    #expect(read.credential?.seed == [6])
    #expect(read.bootstrapAddresses == made.bootstrapAddresses)
    #expect(read.rendezvous == made.rendezvous)
  }

  @Test func channelsComeInTheOrderOfTheirCreation() async throws {
    let store = try await fixture.store()
    for (id, name) in [(3, "c"), (1, "a"), (2, "b")] {
      try await store.write([.channel(stored(id, name, at: UInt64(10 - id)))])
    }
    #expect(try await store.channels().map(\.name) == ["c", "b", "a"])
    #expect(try await store.channels(named: "b").last?.id == ChannelID(bytes32(2)))
    #expect(try await store.channels(named: "d").last == nil)
    #expect(try await store.channel(ChannelID(bytes32(9))) == nil)
  }

  @Test func aChannelWithASecretGoesBeforeAPublicOneOfTheSameName() async throws {
    let store = try await fixture.store()
    let everyones = ChannelKey.fromName("lab").channelID
    try await store.write([.channel(StoredChannel(id: everyones, name: "lab", createdAt: 2))])
    #expect(try await store.channels(named: "lab").map(\.id) == [everyones])
    try await store.write([.channel(stored(1, "lab", at: 1))])
    #expect(try await store.channels(named: "lab").map(\.id) == [channel])
    #expect(try await store.channels(named: "\(everyones)").map(\.id) == [everyones])
  }

  @Test func channelsOfOneNameDifferInTheirIDs() async throws {
    let store = try await fixture.store()
    for number in [1, 2] {
      try await store.write([.channel(stored(number, "lab", at: UInt64(number)))])
    }
    #expect(
      try await store.channels(named: "lab").map(\.id) == [1, 2].map { ChannelID(bytes32($0)) })
    for text in [channel.description, channel.hash.hex] {
      #expect(try await store.channels(named: text).map(\.id) == [channel])
    }
    try await store.write([.rename(channel, to: "old")])
    #expect(try await store.channels(named: "lab").map(\.id) == [ChannelID(bytes32(2))])
    #expect(try await fixture.store().channels(named: "old").map(\.id) == [channel])
  }

  @Test func aForgottenChannelLeavesNothing() async throws {
    let store = try await fixture.store()
    for number in [1, 2] {
      var made = stored(number, "lab \(number)", at: 1)
      made.keys = [try #require(epochKey(0))]
      try await store.write([.channel(made)])
      let entry = try #require(EntryID(bytes32(number).bytes))
      try await store.write([
        .keep(entry: [1, 2, 3], id: entry, channel: made.id),
        .identity(known("Anna", number), channel: made.id),
      ])
    }
    try await store.write([.forgetChannel(channel)])
    let again = try await fixture.store()
    #expect(try await again.channels().map(\.name) == ["lab 2"])
    #expect(try await again.entries(of: channel).isEmpty)
    #expect(try await again.identities(of: channel).isEmpty)
    // Its keys would come back with a channel that is stored under the same id.
    try await again.write([.channel(stored(1, "lab 1", at: 1))])
    #expect(try await again.channel(channel)?.keys.isEmpty == true)
    let other = ChannelID(bytes32(2))
    #expect(try await again.entries(of: other).count == 1)
    #expect(try await again.identities(of: other).count == 1)
  }

  @Test func aRestoredChannelIsMarkedUntilAMemberIsMet() async throws {
    let store = try await StoreFixture().store()
    var channel = stored(1, "lab", at: 1)
    channel.isRestored = true
    try await store.write([.channel(channel)])
    #expect(try await store.channels().map(\.isRestored) == [true])
    try await store.write([.met(ChannelID(bytes32(2)))])
    #expect(try await store.channels().map(\.isRestored) == [true])
    try await store.write([.met(channel.id)])
    #expect(try await store.channels().map(\.isRestored) == [false])
  }

  @Test func theRendezvousThatWorkedAreRemembered() async throws {
    let store = try await fixture.store()
    try await store.write([.channel(stored(1, "lab", at: 1))])
    try await store.write([
      .rendezvous(["a.example:1", "[2001:db8::1]:2"], channel: channel),
      .rendezvous(["b.example:1"], channel: ChannelID(bytes32(2))),
    ])
    #expect(
      try await fixture.store().channel(channel)?.rendezvous == ["a.example:1", "[2001:db8::1]:2"])
    #expect(try await store.channels().count == 1)
  }

  @Test func savingAgainKeepsTheKeysThatCameMeanwhile() async throws {
    let store = try await fixture.store()
    var made = stored(1, "lab", at: 1)
    made.keys = [try #require(epochKey(0))]
    try await store.write([.channel(made)])
    try await store.write([.key(try #require(epochKey(1)), channel: channel)])
    try await store.write([.channel(made)])
    #expect(try await store.channel(channel)?.keys.map(\.number) == [0, 1])
  }

  @Test func entriesAreKeptAndForgottenPerChannel() async throws {
    let store = try await fixture.store()
    let other = ChannelID(bytes32(2))
    try await store.write([
      .keep(entry: [1], id: bytes32(1), channel: channel),
      .keep(entry: [2], id: bytes32(2), channel: channel),
      .keep(entry: [1], id: bytes32(1), channel: other),
      .delivered(bytes32(2), channel: channel),
    ])
    #expect(try await store.undelivered(in: channel) == [bytes32(1)])
    try await store.write([
      .forget([bytes32(1), bytes32(77)], channel: channel),
      // Keeping an entry again does not mark it as undelivered.
      .keep(entry: [2], id: bytes32(2), channel: channel),
    ])
    let reopened = try await fixture.store()
    #expect(try await reopened.entries(of: channel) == [[2]])
    #expect(try await reopened.undelivered(in: channel).isEmpty)
    #expect(try await reopened.entries(of: other) == [[1]])
  }

  @Test func anIdentityGrowsOlderAndStaysVerified() async throws {
    let store = try await fixture.store()
    for identity in [
      known("anna", 1, seen: 100...200), known("anna", 1, seen: 150...150, verified: true),
      known("anna", 1, seen: 240...250), known("anna", 2, seen: 120...120),
    ] { try await store.write([.identity(identity, channel: channel)]) }
    let identities = try await fixture.store().identities(of: channel)
    #expect(
      identities == [
        known("anna", 2, seen: 120...120), known("anna", 1, seen: 100...250, verified: true),
      ])
    #expect(try await store.identities(of: ChannelID(bytes32(2))).isEmpty)
  }

  @Test func everNewNamesWashOutOnlyWhatWasNeverVerified() async throws {
    let store = try await fixture.store()
    try await store.write([
      .identity(known("anna", 1, seen: 1...1, verified: true), channel: channel)
    ])
    try await store.write(
      (0..<9000).map {
        .identity(known("guest \($0)", $0 + 10, seen: 2...UInt64($0 + 2)), channel: channel)
      })
    let names = try await store.identities(of: channel).map(\.name)
    #expect(names.count <= 8193)
    #expect(names.contains("anna"))
    #expect(!names.contains("guest 0"))
    #expect(names.contains("guest 8999"))
  }

  @Test func nobodyElseMayReadIt() async throws {
    let store = try await fixture.store()
    try await store.write([.channel(stored(1, "lab", at: 1))])
    var found = 0
    for suffix in ["", "-wal", "-shm"] {
      var status = stat()
      guard stat(fixture.database + suffix, &status) == 0 else { continue }
      found += 1
      #expect(status.st_mode & 0o777 == 0o600, "\(suffix)")
    }
    #expect(found >= 2)
    withExtendedLifetime(store) {}
  }
}
