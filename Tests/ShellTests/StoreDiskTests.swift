import Foundation
import Glibc
import Muster
import MusterBase
import MusterStore
import Testing

/// Disks that are full, damaged, or hold what a newer version wrote.
struct StoreDiskTests {
  private static let channel = ChannelID(bytes32(1))

  private static func message(_ number: Int, bytes: Int = 900) -> Store.Change {
    .keep(
      entry: [UInt8](repeating: UInt8(number & 0xFF), count: bytes), id: bytes32(number),
      channel: channel)
  }

  /// Limits the size of all files that this process writes; such a test runs in a process of its
  /// own.
  private static func limitFiles(to bytes: UInt) {
    signal(SIGXFSZ, SIG_IGN)
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
    limit.rlim_cur = min(bytes, limit.rlim_max)
    setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
  }

  @Test func aDiskWithoutRoomLosesNothingThatWasWritten() async throws {
    let fixture = StoreFixture()
    let path = fixture.path
    await #expect(processExitsWith: .success) { [path = path as String] in
      let store = try await Store.open(try #require(try DataDirectory.open(path)))
      Self.limitFiles(to: 300_000)
      var written: [Int] = []
      var refused = 0
      for number in 0..<600 {
        do {
          try await store.write([Self.message(number)])
          written.append(number)
        } catch {
          #expect(StoreFixture.isClear(error))
          refused += 1
        }
      }
      #expect(written.count > 10)
      #expect(refused > 10)
      #expect(try await store.entries(of: Self.channel).count == written.count)
      // With space again, writing continues.
      Self.limitFiles(to: .max)
      try await store.write([Self.message(1000)])
      #expect(try await store.entries(of: Self.channel).count == written.count + 1)
    }
    #expect(try await fixture.store().entries(of: Self.channel).count > 10)
  }

  @Test func oneChangeTooLargeDoesNotTakeTheOthersWithIt() async throws {
    let fixture = StoreFixture()
    let path = fixture.path
    await #expect(processExitsWith: .success) { [path = path as String] in
      let store = try await Store.open(try #require(try DataDirectory.open(path)))
      Self.limitFiles(to: 300_000)
      for (number, size) in [(1, 10), (2, 900_000), (3, 10), (4, 10)] {
        store.write([Self.message(number, bytes: size)]) { error in
          #expect((error != nil) == (size > 10))
          if let error { #expect(StoreFixture.isClear(error)) }
        }
      }
      #expect(try await store.entries(of: Self.channel).count == 3)
    }
  }

  @Test func everyTransactionWaitsForTheDisk() async throws {
    #expect(try await StoreFixture().store().synchronous() == 2)
  }

  @Test func aDamagedFileIsAClearErrorAndNeverATrap() async throws {
    let whole = StoreFixture()
    let store = try await whole.store()
    try await fill(store)
    await store.close()
    let bytes = try whole.read(whole.database)
    let positions = bytes.indices.filter { bytes[$0] != 0 }
    var prng = PRNG(seed: 5)
    var refused = 0
    for _ in 0..<300 {
      var damaged = bytes
      for _ in 0...prng.below(12) {
        damaged[positions[prng.below(positions.count)]] = UInt8(truncatingIfNeeded: prng.next())
      }
      if prng.below(8) == 0 { damaged = Array(damaged.prefix(prng.below(damaged.count))) }
      let fixture = StoreFixture()
      try fixture.write(damaged, to: fixture.database)
      do { try await use(fixture.store()) } catch {
        refused += 1
        #expect(StoreFixture.isClear(error), "\(error)")
      }
    }
    #expect(refused > 20)
  }

  @Test(arguments: ["this is a text, not a database", "SQLite format 3\0"])
  func aFileOfAnotherKindIsRefusedAndKept(text: String) async throws {
    let fixture = StoreFixture()
    let bytes = Array((text + String(repeating: "x", count: 5000)).utf8)
    try fixture.write(bytes, to: fixture.database)
    await #expect(throws: MusterError.self) { try await fixture.store() }
    #expect(try fixture.read(fixture.database) == bytes)
  }

  @Test func aFolderThatCannotBeWrittenIsAClearError() async throws {
    let fixture = StoreFixture()
    try FileManager.default.createDirectory(
      atPath: fixture.database, withIntermediateDirectories: true)
    await #expect(throws: MusterError.self) { try await fixture.store() }
  }

  private func vector(_ name: String) throws -> [UInt8] {
    let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    return try Array(Data(contentsOf: tests.appending(path: "Vectors/store/\(name)")))
  }

  @Test func aNewerVersionsDatabaseIsRefusedAndNotTouched() async throws {
    let fixture = StoreFixture()
    let bytes = try vector("newer.sqlite")
    try fixture.write(bytes, to: fixture.database)
    do {
      _ = try await fixture.store()
      Issue.record("it was opened")
    } catch let error as MusterError {
      #expect(error.message.contains("newer version"))
    }
    #expect(try fixture.read(fixture.database) == bytes)
  }

  @Test(arguments: ["version-1.sqlite"])
  func formerVersionsDatabasesAreStillRead(name: String) async throws {
    let fixture = StoreFixture()
    try fixture.write(try vector(name), to: fixture.database)
    let store = try await fixture.store()
    let channels = try await store.channels()
    #expect(channels.map(\.name) == ["lab", "field"])
    #expect(channels.first?.keys.map(\.number) == [0, 1])
    #expect(channels.first?.bootstrapAddresses == ["10.0.0.1:4711"])
    #expect(channels.first?.credential?.seed == [6])
    #expect(
      try await store.entries(of: Self.channel).sorted { $0.count < $1.count }.map(\.count) == [
        10, 20,
      ])
    #expect(try await store.undelivered(in: Self.channel) == [bytes32(2)])
    #expect(
      try await store.identities(of: Self.channel) == [
        known("anna", 1, seen: 100...200, verified: true)
      ])
    try await use(store)
  }

  /// The contents of `version-1.sqlite`.
  private func fill(_ store: Store) async throws {
    var lab = StoredChannel(id: Self.channel, name: "lab", createdAt: 1)
    lab.keys = [epochKey(0), epochKey(1)].compactMap { $0 }
    lab.credential = StoredChannel.InviteCredential(grant: [4, 5], seed: [6])
    lab.bootstrapAddresses = ["10.0.0.1:4711"]
    try await store.write([.channel(lab)])
    try await store.write([
      .channel(StoredChannel(id: ChannelID(bytes32(2)), name: "field", createdAt: 2))
    ])
    let identity = known("anna", 1, seen: 100...200, verified: true)
    try await store.write([
      Self.message(1, bytes: 10), Self.message(2, bytes: 20),
      .delivered(bytes32(1), channel: Self.channel), .identity(identity, channel: Self.channel),
    ])
  }

  /// Performs the operations that a node performs on a store.
  private func use(_ store: Store) async throws {
    for channel in try await store.channels() {
      _ = try await store.entries(of: channel.id)
      _ = try await store.undelivered(in: channel.id)
      _ = try await store.identities(of: channel.id)
    }
    try await store.write([
      Self.message(50), .delivered(bytes32(50), channel: Self.channel),
      .forget([bytes32(50)], channel: Self.channel),
      .identity(known("berta", 2), channel: Self.channel),
      .key(try #require(epochKey(9)), channel: Self.channel), .met(Self.channel),
    ])
  }
}
