import Foundation
import GRDB
import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterDevices

/// A node's durable state: channels with their keys, signed entries, and the known names and keys
/// of members.
///
/// The store is an SQLite file in the data directory, with a write-ahead log and synchronous mode
/// FULL: a committed transaction survives `kill -9`, a full disk and a power failure.
public final class Store: Sendable {
  /// One change to the durable state.
  public enum Change: Sendable {
    /// Stores a signed entry of a channel.
    case keep(entry: [UInt8], id: EntryID, channel: ChannelID)
    /// Deletes entries that the document no longer holds.
    case forget([EntryID], channel: ChannelID)
    /// Marks a message as shown to the user.
    case delivered(EntryID, channel: ChannelID)
    /// Stores the channel key of an epoch.
    case key(EpochKey, channel: ChannelID)
    /// Stores a member's name with the key seen under that name.
    case identity(KnownIdentity, channel: ChannelID)
    /// Gives a channel another local name.
    case rename(ChannelID, to: String)
    /// Deletes all that is stored of a channel: keys, invite, entries, and its members' names.
    case forgetChannel(ChannelID)
    /// Notes that this node, restored from a backup, knows what another member of a channel knows.
    case met(ChannelID)
    /// Replaces the list of rendezvous servers at which members of a channel met, as `HOST:PORT`,
    /// best first.
    case rendezvous([String], channel: ChannelID)
  }

  private let queue: DatabaseQueue
  private let path: String

  private init(queue: DatabaseQueue, path: String) {
    self.queue = queue
    self.path = path
  }

  // MARK: Opening

  /// Opens the store of a directory, creating or migrating it if necessary. Throws if the file
  /// cannot be used, is damaged or was written by a newer version.
  public static func open(_ directory: DataDirectory) throws(MusterError) -> Store {
    let path = directory.path + "/muster.sqlite"
    // The file is created with mode 0600 before SQLite opens it, so that other users can never read
    // it; SQLite gives its other files the same mode.
    let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw MusterError(
        "cannot open \(path) (\(SystemError.last))",
        hint: "check its permissions, or use --data with a directory of yours")
    }
    close(descriptor)
    do {
      var configuration = GRDB.Configuration()
      configuration.busyMode = .timeout(5)
      configuration.prepareDatabase { database in
        // The modes are not set through `configuration.journalMode`, which would afterwards change
        // synchronous to NORMAL and write to the file, even to one of a newer version.
        try database.execute(sql: "PRAGMA journal_mode = WAL")
        try database.execute(sql: "PRAGMA synchronous = FULL")
      }
      let queue = try DatabaseQueue(path: path, configuration: configuration)
      let migrator = Schema.migrator
      let isFromFuture = try queue.read { try migrator.hasBeenSuperseded($0) }
      guard !isFromFuture else {
        throw MusterError(
          "\(path) was written by a newer version of muster",
          hint: "update this one, or use --data with another directory")
      }
      try migrator.migrate(queue)
      return Store(queue: queue, path: path)
    } catch { throw explained(error, path) }
  }

  /// The user-facing error for a failed access, with the path of the file.
  package static func explained(_ error: any Error, _ path: String) -> MusterError {
    if let error = error as? MusterError { return error }
    if error is RowDecodingError { return damaged(path) }
    guard let error = error as? DatabaseError else {
      return MusterError("cannot use \(path) (\(error))", hint: "check the disk")
    }
    switch error.resultCode {
    case .SQLITE_FULL:
      return MusterError(
        "the disk is full: \(path) cannot be written", hint: "make room; nothing was lost")
    case .SQLITE_NOTADB, .SQLITE_CORRUPT: return damaged(path)
    case .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM:
      return MusterError(
        "\(path) cannot be written", hint: "check its owner and permissions")
    case .SQLITE_IOERR:
      return MusterError(
        "the disk fails: \(path) cannot be used (\(error.message ?? "I/O error"))",
        hint: "check the disk and its free space")
    default:
      return MusterError(
        "cannot use \(path) (\(error.message ?? error.resultCode.description))",
        hint: "check the disk, or use --data with another directory")
    }
  }

  private static func damaged(_ path: String) -> MusterError {
    MusterError(
      "\(path) is damaged",
      hint: "restore it from a copy, or move it away: channels then need new invites")
  }

  /// SQLite's synchronous mode, for tests; 2 is FULL.
  package var synchronous: Int? {
    try? queue.read { try Int.fetchOne($0, sql: "PRAGMA synchronous") }
  }

  private func read<T>(_ body: (Database) throws -> T) throws(MusterError) -> T {
    do { return try queue.read(body) } catch { throw Self.explained(error, path) }
  }

  private func write(_ body: (Database) throws -> Void) throws(MusterError) {
    do { try queue.write(body) } catch { throw Self.explained(error, path) }
  }

  // MARK: Channels

  /// All channels, oldest first. Throws if the file cannot be read or is damaged.
  public func channels() throws(MusterError) -> [StoredChannel] {
    try read { database in
      try Row.fetchAll(database, sql: "SELECT * FROM channel ORDER BY createdAt, name").compactMap {
        try Self.channel($0, database)
      }
    }
  }

  /// The channel with this id; nil if unknown.
  public func channel(_ id: ChannelID) throws(MusterError) -> StoredChannel? {
    try read { database in
      let row = try Row.fetchOne(
        database, sql: "SELECT * FROM channel WHERE id = ?", arguments: [Data(id.hash.bytes)])
      return try row.flatMap { try Self.channel($0, database) }
    }
  }

  /// The channels that `text` may mean, oldest first: that with this id (16 or 64 hex digits), or
  /// else those with this name. Channels whose key anyone can derive from the name are among the
  /// latter only if there are no others.
  public func channels(named text: String) throws(MusterError) -> [StoredChannel] {
    let all = try channels()
    guard !Hex.isID(text) else { return all.filter { $0.id.isNamed(by: text) } }
    let named = all.filter { $0.name == text }
    let keyed = named.filter { !$0.isPublic }
    return keyed.isEmpty ? named : keyed
  }

  /// Inserts or updates a channel and adds its keys; stored keys of other epochs are kept.
  public func save(_ channel: StoredChannel) throws(MusterError) {
    try write { database in
      try database.execute(
        sql: """
          INSERT OR REPLACE INTO channel
          (id, name, genesis, createdAt, ticketGrant, ticketSeed, peers, rendezvous, isRestored)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
          """,
        arguments: [
          Data(channel.id.hash.bytes), channel.name, channel.genesis.map { Data($0) },
          Int64(clamping: channel.createdAt), channel.credential.map { Data($0.grant) },
          channel.credential.map { Data($0.seed) },
          channel.bootstrapAddresses.joined(separator: "\n"),
          channel.rendezvous.joined(separator: "\n"), channel.isRestored,
        ])
      for key in channel.keys { try Self.insert(key, channel.id, database) }
    }
  }

  private static func channel(_ row: Row, _ database: Database) throws -> StoredChannel? {
    // `decode` throws where a subscript would trap: a damaged file can contain any value in any
    // column.
    let bytes = try row.decode(Data.self, forColumn: "id")
    guard let key = Bytes32(bytes) else { return nil }
    var channel = StoredChannel(
      id: ChannelID(key), name: try row.decode(forColumn: "name"),
      createdAt: try seconds(row, "createdAt"))
    channel.genesis = try row.decode(Data?.self, forColumn: "genesis").map { Array($0) }
    if let grant = try row.decode(Data?.self, forColumn: "ticketGrant"),
      let seed = try row.decode(Data?.self, forColumn: "ticketSeed")
    {
      channel.credential = StoredChannel.InviteCredential(grant: Array(grant), seed: Array(seed))
    }
    channel.bootstrapAddresses = try lines(row, "peers")
    channel.rendezvous = try lines(row, "rendezvous")
    channel.isRestored = try row.decode(forColumn: "isRestored")
    let keys = try Row.fetchAll(
      database, sql: "SELECT number, secret FROM epochKey WHERE channel = ? ORDER BY number",
      arguments: [bytes])
    channel.keys = try keys.compactMap { row in
      let number = UInt32(clamping: try row.decode(Int64.self, forColumn: "number"))
      return ChannelKey(secret: Array(try row.decode(Data.self, forColumn: "secret")))
        .map { EpochKey(number: number, key: $0) }
    }
    return channel
  }

  private static func seconds(_ row: Row, _ column: String) throws -> UInt64 {
    UInt64(clamping: try row.decode(Int64.self, forColumn: column))
  }

  /// The non-empty lines of a text column; throws if the value is not text.
  package static func lines(_ row: Row, _ column: String) throws -> [String] {
    try row.decode(String.self, forColumn: column).split(separator: "\n").map { String($0) }
  }

  private static func insert(
    _ key: EpochKey, _ channel: ChannelID, _ database: Database
  ) throws {
    try database.execute(
      sql: "INSERT OR REPLACE INTO epochKey (channel, number, secret) VALUES (?, ?, ?)",
      arguments: [
        Data(channel.hash.bytes), Int64(key.number), key.key.withSecret { Data($0) },
      ])
  }

  // MARK: Entries and identities

  /// Adds the stored entries of the setup's channel, and the ids of those not marked as shown, to
  /// the setup with which a node joins.
  package func fill(_ setup: inout ChannelSetup) throws(MusterError) {
    setup.entries = try entries(of: setup.id)
    setup.undelivered = try undelivered(in: setup.id)
  }

  /// The ids of the stored entries that are not marked as shown. They include all entries other
  /// than messages, because only messages are ever marked.
  public func undelivered(in channel: ChannelID) throws(MusterError) -> [EntryID] {
    try read { database in
      try Data.fetchAll(
        database, sql: "SELECT id FROM entry WHERE channel = ? AND NOT isShown",
        arguments: [Data(channel.hash.bytes)]
      ).compactMap { EntryID($0) }
    }
  }

  /// The encoded entries stored for a channel, each with its signature, in no particular order.
  public func entries(of channel: ChannelID) throws(MusterError) -> [[UInt8]] {
    try read { database in
      try Data.fetchAll(
        database, sql: "SELECT bytes FROM entry WHERE channel = ?",
        arguments: [Data(channel.hash.bytes)]
      ).map { Array($0) }
    }
  }

  /// Applies all changes in one transaction; an error leaves the store unchanged.
  public func apply(_ changes: [Change]) throws(MusterError) {
    try write { database in
      var named: [ChannelID] = []
      for change in changes {
        try Self.apply(change, database)
        if case .identity(_, let channel) = change, !named.contains(channel) {
          named.append(channel)
        }
      }
      for channel in named { try Self.pruneIdentities(of: channel, database) }
    }
  }

  private static func apply(_ change: Change, _ database: Database) throws {
    switch change {
    case .keep(let entry, let id, let channel):
      try database.execute(
        sql: "INSERT OR IGNORE INTO entry (channel, id, bytes) VALUES (?, ?, ?)",
        arguments: [Data(channel.hash.bytes), Data(id.bytes), Data(entry)])
    case .forget(let ids, let channel):
      for id in ids {
        try database.execute(
          sql: "DELETE FROM entry WHERE channel = ? AND id = ?",
          arguments: [Data(channel.hash.bytes), Data(id.bytes)])
      }
    case .delivered(let id, let channel):
      try database.execute(
        sql: "UPDATE entry SET isShown = TRUE WHERE channel = ? AND id = ?",
        arguments: [Data(channel.hash.bytes), Data(id.bytes)])
    case .key(let key, let channel): try insert(key, channel, database)
    case .identity(let identity, let channel): try insert(identity, channel, database)
    case .rename(let channel, let name):
      try database.execute(
        sql: "UPDATE channel SET name = ? WHERE id = ?",
        arguments: [name, Data(channel.hash.bytes)])
    case .forgetChannel(let channel):
      let id = Data(channel.hash.bytes)
      for table in ["entry", "identity", "epochKey"] {
        try database.execute(sql: "DELETE FROM \(table) WHERE channel = ?", arguments: [id])
      }
      try database.execute(sql: "DELETE FROM channel WHERE id = ?", arguments: [id])
    case .met(let channel):
      try database.execute(
        sql: "UPDATE channel SET isRestored = FALSE WHERE id = ?",
        arguments: [Data(channel.hash.bytes)])
    case .rendezvous(let texts, let channel):
      try database.execute(
        sql: "UPDATE channel SET rendezvous = ? WHERE id = ?",
        arguments: [texts.joined(separator: "\n"), Data(channel.hash.bytes)])
    }
  }

  private static func insert(
    _ identity: KnownIdentity, _ channel: ChannelID, _ database: Database
  ) throws {
    let id = Data(channel.hash.bytes)
    try database.execute(
      sql: """
        INSERT INTO identity (channel, name, key, firstSeen, lastSeen, isVerified)
        VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (channel, name, key) DO UPDATE SET
          lastSeen = max(lastSeen, excluded.lastSeen),
          isVerified = isVerified OR excluded.isVerified
        """,
      arguments: [
        id, identity.name, Data(identity.key.key.bytes), Int64(clamping: identity.firstSeen),
        Int64(clamping: identity.lastSeen), identity.isVerified,
      ])
  }

  private static func pruneIdentities(of channel: ChannelID, _ database: Database) throws {
    let id = Data(channel.hash.bytes)
    let count = try Int.fetchOne(
      database, sql: "SELECT count(*) FROM identity WHERE channel = ?", arguments: [id])
    // Pruning takes milliseconds, so it starts only above twice the limit.
    guard let count, count > 2 * TrustBook.limit else { return }
    // Those go first that a member which keeps changing its name has left behind.
    try database.execute(
      sql: """
        DELETE FROM identity WHERE rowid IN (
          SELECT rowid FROM (
            SELECT rowid, row_number() OVER (PARTITION BY key ORDER BY lastSeen DESC) AS place
            FROM identity WHERE channel = ?)
          WHERE place > ?)
        """,
      arguments: [id, TrustBook.namesPerKey])
    try database.execute(
      sql: """
        DELETE FROM identity WHERE channel = ? AND NOT isVerified AND rowid NOT IN (
          SELECT rowid FROM identity WHERE channel = ? AND NOT isVerified
          ORDER BY lastSeen DESC LIMIT ?)
        """,
      arguments: [id, id, TrustBook.limit])
  }

  /// The identities known in a channel, least recently seen first.
  public func identities(of channel: ChannelID) throws(MusterError) -> [KnownIdentity] {
    try read { database in
      try Row.fetchAll(
        database, sql: "SELECT * FROM identity WHERE channel = ? ORDER BY lastSeen",
        arguments: [Data(channel.hash.bytes)]
      ).compactMap { row in
        guard let key = Bytes32(try row.decode(Data.self, forColumn: "key")) else { return nil }
        return KnownIdentity(
          name: try row.decode(forColumn: "name"), key: NodeID(key),
          firstSeen: try Self.seconds(row, "firstSeen"),
          lastSeen: try Self.seconds(row, "lastSeen"),
          isVerified: try row.decode(forColumn: "isVerified"))
      }
    }
  }
}
