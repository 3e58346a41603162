import Foundation
import GRDB
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
  func store() throws -> Store {
    let directory = try #require(try DataDirectory.open(path))
    return try Store.open(directory)
  }

  /// Opens the store once a node that has ended releases the directory; waits at most 5 s.
  func storeOnceFree() throws -> Store {
    for _ in 0..<500 {
      if let directory = try DataDirectory.open(path) { return try Store.open(directory) }
      usleep(10_000)
    }
    return try store()
  }

  var database: String { path + "/muster.sqlite" }

  /// Holds the database's write lock for `time`, as another process or a slow disk may; the task
  /// ends when the lock is released.
  func blockWrites(for time: Duration) async throws -> Task<Void, any Error> {
    var configuration = GRDB.Configuration()
    configuration.allowsUnsafeTransactions = true
    let lock = try DatabaseQueue(path: database, configuration: configuration)
    try await lock.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
    return Task {
      try await Task.sleep(for: time)
      try await lock.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") }
    }
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
