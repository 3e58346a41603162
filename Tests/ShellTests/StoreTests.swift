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

  @Test func everythingOfAChannelComesBack() throws {
    var made = stored(1, "lab \u{1F4E1}", at: 1_700_000_000)
    made.genesis = [1, 2, 3]
    made.keys = [epochKey(0), epochKey(70_000), epochKey(2)].compactMap { $0 }
    made.credential = StoredChannel.InviteCredential(grant: [4, 5], seed: [6])
    made.bootstrapAddresses = ["10.0.0.1:4711", "[fe80::1%eth0]:4711"]
    made.rendezvous = ["example.org:1"]
    try fixture.store().save(made)
    let read = try #require(try fixture.store().channel(channel))
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

  @Test func channelsComeInTheOrderOfTheirCreation() throws {
    let store = try fixture.store()
    for (id, name) in [(3, "c"), (1, "a"), (2, "b")] {
      try store.save(stored(id, name, at: UInt64(10 - id)))
    }
    #expect(try store.channels().map(\.name) == ["c", "b", "a"])
    #expect(try store.channels(named: "b").last?.id == ChannelID(bytes32(2)))
    #expect(try store.channels(named: "d").last == nil)
    #expect(try store.channel(ChannelID(bytes32(9))) == nil)
  }

  @Test func aChannelWithASecretGoesBeforeAPublicOneOfTheSameName() throws {
    let store = try fixture.store()
    let everyones = ChannelKey.fromName("lab").channelID
    try store.save(StoredChannel(id: everyones, name: "lab", createdAt: 2))
    #expect(try store.channels(named: "lab").map(\.id) == [everyones])
    try store.save(stored(1, "lab", at: 1))
    #expect(try store.channels(named: "lab").map(\.id) == [channel])
    #expect(try store.channels(named: "\(everyones)").map(\.id) == [everyones])
  }

  @Test func channelsOfOneNameDifferInTheirIDs() throws {
    let store = try fixture.store()
    for number in [1, 2] { try store.save(stored(number, "lab", at: UInt64(number))) }
    #expect(try store.channels(named: "lab").map(\.id) == [1, 2].map { ChannelID(bytes32($0)) })
    for text in [channel.description, channel.hash.hex] {
      #expect(try store.channels(named: text).map(\.id) == [channel])
    }
    try store.apply([.rename(channel, to: "old")])
    #expect(try store.channels(named: "lab").map(\.id) == [ChannelID(bytes32(2))])
    #expect(try fixture.store().channels(named: "old").map(\.id) == [channel])
  }

  @Test func aForgottenChannelLeavesNothing() throws {
    let store = try fixture.store()
    for number in [1, 2] {
      var made = stored(number, "lab \(number)", at: 1)
      made.keys = [try #require(epochKey(0))]
      try store.save(made)
      let entry = try #require(EntryID(bytes32(number).bytes))
      try store.apply([
        .keep(entry: [1, 2, 3], id: entry, channel: made.id),
        .identity(known("Anna", number), channel: made.id),
      ])
    }
    try store.apply([.forgetChannel(channel)])
    let again = try fixture.store()
    #expect(try again.channels().map(\.name) == ["lab 2"])
    #expect(try again.entries(of: channel).isEmpty && again.identities(of: channel).isEmpty)
    // Its keys would come back with a channel that is stored under the same id.
    try again.save(stored(1, "lab 1", at: 1))
    #expect(try again.channel(channel)?.keys.isEmpty == true)
    let other = ChannelID(bytes32(2))
    #expect(try again.entries(of: other).count == 1 && again.identities(of: other).count == 1)
  }

  @Test func aRestoredChannelIsMarkedUntilAMemberIsMet() throws {
    let store = try StoreFixture().store()
    var channel = stored(1, "lab", at: 1)
    channel.isRestored = true
    try store.save(channel)
    #expect(try store.channels().map(\.isRestored) == [true])
    try store.apply([.met(ChannelID(bytes32(2)))])
    #expect(try store.channels().map(\.isRestored) == [true])
    try store.apply([.met(channel.id)])
    #expect(try store.channels().map(\.isRestored) == [false])
  }

  @Test func theRendezvousThatWorkedAreRemembered() throws {
    let store = try fixture.store()
    try store.save(stored(1, "lab", at: 1))
    try store.apply([
      .rendezvous(["a.example:1", "[2001:db8::1]:2"], channel: channel),
      .rendezvous(["b.example:1"], channel: ChannelID(bytes32(2))),
    ])
    #expect(try fixture.store().channel(channel)?.rendezvous == ["a.example:1", "[2001:db8::1]:2"])
    #expect(try store.channels().count == 1)
  }

  @Test func savingAgainKeepsTheKeysThatCameMeanwhile() throws {
    let store = try fixture.store()
    var made = stored(1, "lab", at: 1)
    made.keys = [try #require(epochKey(0))]
    try store.save(made)
    try store.apply([.key(try #require(epochKey(1)), channel: channel)])
    try store.save(made)
    #expect(try store.channel(channel)?.keys.map(\.number) == [0, 1])
  }

  @Test func entriesAreKeptAndForgottenPerChannel() throws {
    let store = try fixture.store()
    let other = ChannelID(bytes32(2))
    try store.apply([
      .keep(entry: [1], id: bytes32(1), channel: channel),
      .keep(entry: [2], id: bytes32(2), channel: channel),
      .keep(entry: [1], id: bytes32(1), channel: other),
      .delivered(bytes32(2), channel: channel),
    ])
    #expect(try store.undelivered(in: channel) == [bytes32(1)])
    try store.apply([
      .forget([bytes32(1), bytes32(77)], channel: channel),
      // Keeping an entry again does not mark it as undelivered.
      .keep(entry: [2], id: bytes32(2), channel: channel),
    ])
    let reopened = try fixture.store()
    #expect(try reopened.entries(of: channel) == [[2]])
    #expect(try reopened.undelivered(in: channel).isEmpty)
    #expect(try reopened.entries(of: other) == [[1]])
  }

  @Test func anIdentityGrowsOlderAndStaysVerified() throws {
    let store = try fixture.store()
    for identity in [
      known("anna", 1, seen: 100...200), known("anna", 1, seen: 150...150, verified: true),
      known("anna", 1, seen: 240...250), known("anna", 2, seen: 120...120),
    ] { try store.apply([.identity(identity, channel: channel)]) }
    let identities = try fixture.store().identities(of: channel)
    #expect(
      identities == [
        known("anna", 2, seen: 120...120), known("anna", 1, seen: 100...250, verified: true),
      ])
    #expect(try store.identities(of: ChannelID(bytes32(2))).isEmpty)
  }

  @Test func everNewNamesWashOutOnlyWhatWasNeverVerified() throws {
    let store = try fixture.store()
    try store.apply([.identity(known("anna", 1, seen: 1...1, verified: true), channel: channel)])
    try store.apply(
      (0..<9000).map {
        .identity(known("guest \($0)", $0 + 10, seen: 2...UInt64($0 + 2)), channel: channel)
      })
    let names = try store.identities(of: channel).map(\.name)
    #expect(names.count <= 8193)
    #expect(names.contains("anna"))
    #expect(!names.contains("guest 0"))
    #expect(names.contains("guest 8999"))
  }

  @Test func nobodyElseMayReadIt() throws {
    let store = try fixture.store()
    try store.save(stored(1, "lab", at: 1))
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
