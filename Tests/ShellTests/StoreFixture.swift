import CSQLite
import Foundation
import Glibc
import Muster
import MusterBase
import MusterCrypto
import MusterStore
import Testing

/// A data directory for one test, removed on deinitialisation.
final class StoreFixture: Sendable {
  /// The path of the data directory, which its first user creates.
  let path: String
  private let top: String

  /// `depth` is the number of parent folders, to make the path longer than a socket address allows.
  init(depth: Int = 0) {
    let folders = String(repeating: "/a-folder-with-a-long-name", count: depth)
    top = FileManager.default.temporaryDirectory.path + "/muster-test-\(UUID())"
    path = top + folders + "/data"
  }

  deinit { try? FileManager.default.removeItem(atPath: top) }

  /// The configuration of a node with this data directory, in one channel, which meets nobody.
  func configuration(
    _ source: Muster.Configuration.Channel.Source, _ name: String = "lab"
  ) -> Muster.Configuration {
    var configuration = Muster.Configuration()
    configuration.dataDirectory = path
    configuration.channels = [.init(name: name, source: source)]
    configuration.interfaces = ["lo"]
    configuration.lan = false
    return configuration
  }

  /// The store, reopened as after a restart, once the former one is closed.
  func store() async throws -> Store {
    let directory = try #require(try DataDirectory.open(path))
    return try await Store.open(directory)
  }

  /// Opens the store once a node that has ended releases the directory; waits at most 5 s.
  func storeOnceFree() async throws -> Store {
    for _ in 0..<500 {
      if let directory = try DataDirectory.open(path) { return try await Store.open(directory) }
      try await Task.sleep(for: .milliseconds(10))
    }
    return try await store()
  }

  var database: String { path + "/muster.sqlite" }

  /// Takes the database's write lock, as another process or a slow disk may.
  func lockDatabase() throws -> DatabaseLock { try DatabaseLock(database) }

  /// Holds the database's write lock for `time`; the task ends when the lock is released.
  func blockWrites(for time: Duration) throws -> Task<Void, any Error> {
    let lock = try lockDatabase()
    return Task {
      try await Task.sleep(for: time)
      lock.release()
    }
  }

  /// The number of entries that another process would read from the database now.
  var entryCount: Int32? {
    var file: OpaquePointer?
    var statement: OpaquePointer?
    defer {
      sqlite3_finalize(statement)
      sqlite3_close(file)
    }
    guard sqlite3_open(database, &file) == SQLITE_OK,
      sqlite3_prepare_v2(file, "SELECT count(*) FROM entry", -1, &statement, nil) == SQLITE_OK,
      sqlite3_step(statement) == SQLITE_ROW
    else { return nil }
    return sqlite3_column_int(statement, 0)
  }

  func read(_ file: String) throws -> [UInt8] {
    try Array(Data(contentsOf: URL(filePath: file)))
  }

  func write(_ bytes: [UInt8], to file: String) throws {
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    try Data(bytes).write(to: URL(filePath: file))
  }

  /// Whether an error is a `MusterError` with a message and a hint.
  static func isClear(_ error: any Error) -> Bool {
    guard let error = error as? MusterError else { return false }
    return !error.message.isEmpty && !error.hint.isEmpty
  }
}

/// The write lock of a database, held by a connection of its own.
final class DatabaseLock: @unchecked Sendable {
  // Used by one task at a time.
  private let file: OpaquePointer

  init(_ path: String) throws {
    var file: OpaquePointer?
    #expect(sqlite3_open(path, &file) == SQLITE_OK)
    self.file = try #require(file)
    #expect(sqlite3_exec(file, "BEGIN IMMEDIATE", nil, nil, nil) == SQLITE_OK)
  }

  func release() { #expect(sqlite3_close(file) == SQLITE_OK) }
}

extension Store {
  func channels() async throws -> [StoredChannel] { try await read { try $0.channels() } }

  func channel(_ id: ChannelID) async throws -> StoredChannel? {
    try await read { try $0.channel(id) }
  }

  func channels(named text: String) async throws -> [StoredChannel] {
    try await channels().named(text)
  }

  func entries(of channel: ChannelID) async throws -> [[UInt8]] {
    try await read { try $0.entries(of: channel) }
  }

  func undelivered(in channel: ChannelID) async throws -> [EntryID] {
    try await read { try $0.undelivered(in: channel) }
  }

  func identities(of channel: ChannelID) async throws -> [KnownIdentity] {
    try await read { try $0.identities(of: channel) }
  }
}

/// 32 bytes that encode two numbers.
func bytes32(_ first: Int, _ second: Int = 0) -> Bytes32 {
  let bytes = [first, second].flatMap { number in
    stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> $0) }
  }
  return Bytes32(bytes + [UInt8](repeating: 0, count: 16)) ?? .zero
}

func epochKey(_ number: UInt32) -> EpochKey? {
  ChannelKey(secret: bytes32(Int(number), 7).bytes).map { EpochKey(number: number, key: $0) }
}

func known(
  _ name: String, _ key: Int, seen: ClosedRange<UInt64> = 100...100, verified: Bool = false
) -> KnownIdentity {
  KnownIdentity(
    name: name, key: NodeID(bytes32(key)), firstSeen: seen.lowerBound, lastSeen: seen.upperBound,
    isVerified: verified)
}
