import CSQLite
import MusterBase
import MusterCore
import MusterCrypto
import MusterSystem

/// The store's SQLite file; only the store's queue uses it.
///
/// With a write-ahead log and synchronous mode FULL, a committed transaction survives `kill -9`, a
/// full disk and a power failure.
final class StoreFile {
  private let path: String
  private let file: SQLiteFile

  /// Opens the file of a directory, creating or migrating it if necessary. Throws if the file
  /// cannot be used, is damaged or was written by a newer version.
  init(in directory: String) throws(MusterError) {
    path = Self.path(in: directory)
    // The file is created with mode 0600 before SQLite opens it, so that other users can never read
    // it; SQLite gives its other files the same mode.
    let descriptor = MusterSystem.open(
      path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw MusterError(
        "cannot open \(path) (\(SystemError.last))",
        hint: "check its permissions, or use --data with a directory of yours")
    }
    MusterSystem.close(descriptor)
    do {
      file = try SQLiteFile(path, patience: 5000)
      try file.execute("PRAGMA journal_mode = WAL")
      try file.execute("PRAGMA synchronous = FULL")
      try Schema.migrate(file)
    } catch { throw Self.explained(error, path) }
  }

  private static func path(in directory: String) -> String { directory + "/muster.sqlite" }

  /// SQLite's synchronous mode; 2 is FULL.
  var synchronous: Int64? {
    try? file.query("PRAGMA synchronous") { try $0.integer(0) }.first
  }

  /// The rendezvous servers stored with the channels of a directory, as in `Store.rendezvous`.
  static func rendezvous(in directory: String) throws(MusterError) -> [String] {
    let path = path(in: directory)
    guard access(path, F_OK) == 0 || errno != ENOENT else { return [] }
    do {
      return try StoreSnapshot(SQLiteFile(path, isReadOnly: true, patience: 1000)).rendezvous()
    } catch { throw explained(error, path) }
  }

  /// Closes the file; every later access throws.
  func close() { file.close() }

  // MARK: Errors

  /// The user-facing error for a failed access, with the path of the file.
  private static func explained(_ error: any Error, _ path: String) -> MusterError {
    if let error = error as? MusterError { return error }
    if error is NewerSchema {
      return MusterError(
        "\(path) was written by a newer version of muster",
        hint: "update this one, or use --data with another directory")
    }
    guard let error = error as? SQLiteError else { return damaged(path) }
    switch error.code {
    case SQLITE_FULL:
      return MusterError(
        "the disk is full: \(path) cannot be written", hint: "make room; nothing was lost")
    case SQLITE_NOTADB, SQLITE_CORRUPT: return damaged(path)
    case SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_PERM:
      return MusterError(
        "\(path) cannot be written", hint: "check its owner and permissions")
    case SQLITE_IOERR:
      return MusterError(
        "the disk fails: \(path) cannot be used (\(error.message))",
        hint: "check the disk and its free space")
    default:
      return MusterError(
        "cannot use \(path) (\(error.message))",
        hint: "check the disk, or use --data with another directory")
    }
  }

  private static func damaged(_ path: String) -> MusterError {
    MusterError(
      "\(path) is damaged",
      hint: "restore it from a copy, or move it away: channels then need new invites")
  }

  // MARK: Transactions

  /// Reads in one transaction, so that all of it is of the same moment.
  func read<T>(_ body: (StoreSnapshot) throws -> T) throws(MusterError) -> T {
    do {
      return try file.transaction(isWriting: false) { try body(StoreSnapshot(file)) }
    } catch { throw Self.explained(error, path) }
  }

  /// Applies all changes in one transaction; an error leaves the file unchanged.
  func apply(_ changes: [Store.Change]) throws(MusterError) {
    guard !changes.isEmpty else { return }
    do {
      try file.transaction(isWriting: true) {
        var named: [ChannelID] = []
        for change in changes {
          try apply(change)
          if case .identity(_, let channel) = change, !named.contains(channel) {
            named.append(channel)
          }
        }
        for channel in named { try pruneIdentities(of: channel) }
      }
    } catch { throw Self.explained(error, path) }
  }

  private func apply(_ change: Store.Change) throws {
    switch change {
    case .channel(let channel): try save(channel)
    case .keep(let entry, let id, let channel):
      try file.execute(
        "INSERT OR IGNORE INTO entry (channel, id, bytes) VALUES (?, ?, ?)",
        .blob(channel.hash.bytes), .blob(id.bytes), .blob(entry))
    case .forget(let ids, let channel):
      for id in ids {
        try file.execute(
          "DELETE FROM entry WHERE channel = ? AND id = ?", .blob(channel.hash.bytes),
          .blob(id.bytes))
      }
    case .delivered(let id, let channel):
      try file.execute(
        "UPDATE entry SET isShown = TRUE WHERE channel = ? AND id = ?",
        .blob(channel.hash.bytes), .blob(id.bytes))
    case .key(let key, let channel): try insert(key, channel)
    case .identity(let identity, let channel): try insert(identity, channel)
    case .rename(let channel, let name):
      try file.execute(
        "UPDATE channel SET name = ? WHERE id = ?", .text(name), .blob(channel.hash.bytes))
    case .forgetChannel(let channel):
      let id = SQLiteValue.blob(channel.hash.bytes)
      for table in ["entry", "identity", "epochKey"] {
        try file.execute("DELETE FROM \(table) WHERE channel = ?", id)
      }
      try file.execute("DELETE FROM channel WHERE id = ?", id)
    case .met(let channel):
      try file.execute(
        "UPDATE channel SET isRestored = FALSE WHERE id = ?", .blob(channel.hash.bytes))
    case .rendezvous(let texts, let channel):
      try file.execute(
        "UPDATE channel SET rendezvous = ? WHERE id = ?",
        .text(texts.joined(separator: "\n")), .blob(channel.hash.bytes))
    }
  }

  private func save(_ channel: StoredChannel) throws {
    try file.execute(
      """
      INSERT OR REPLACE INTO channel
      (id, name, genesis, createdAt, ticketGrant, ticketSeed, peers, rendezvous, isRestored)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      .blob(channel.id.hash.bytes), .text(channel.name), .blob(channel.genesis),
      .integer(Int64(clamping: channel.createdAt)), .blob(channel.credential?.grant),
      .blob(channel.credential?.seed),
      .text(channel.bootstrapAddresses.joined(separator: "\n")),
      .text(channel.rendezvous.joined(separator: "\n")), .integer(channel.isRestored ? 1 : 0))
    for key in channel.keys { try insert(key, channel.id) }
  }

  private func insert(_ key: EpochKey, _ channel: ChannelID) throws {
    try file.execute(
      "INSERT OR REPLACE INTO epochKey (channel, number, secret) VALUES (?, ?, ?)",
      .blob(channel.hash.bytes), .integer(Int64(key.number)),
      .blob(key.key.withSecret { Array($0) }))
  }

  private func insert(_ identity: KnownIdentity, _ channel: ChannelID) throws {
    try file.execute(
      """
      INSERT INTO identity (channel, name, key, firstSeen, lastSeen, isVerified)
      VALUES (?, ?, ?, ?, ?, ?)
      ON CONFLICT (channel, name, key) DO UPDATE SET
        lastSeen = max(lastSeen, excluded.lastSeen),
        isVerified = isVerified OR excluded.isVerified
      """,
      .blob(channel.hash.bytes), .text(identity.name), .blob(identity.key.key.bytes),
      .integer(Int64(clamping: identity.firstSeen)), .integer(Int64(clamping: identity.lastSeen)),
      .integer(identity.isVerified ? 1 : 0))
  }

  private func pruneIdentities(of channel: ChannelID) throws {
    let id = SQLiteValue.blob(channel.hash.bytes)
    let count = try file.query("SELECT count(*) FROM identity WHERE channel = ?", id) {
      try $0.integer(0)
    }
    // Pruning takes milliseconds, so it starts only above twice the limit.
    guard count.first ?? 0 > 2 * TrustBook.limit else { return }
    // Those go first that a member which keeps changing its name has left behind.
    try file.execute(
      """
      DELETE FROM identity WHERE rowid IN (
        SELECT rowid FROM (
          SELECT rowid, row_number() OVER (PARTITION BY key ORDER BY lastSeen DESC) AS place
          FROM identity WHERE channel = ?)
        WHERE place > ?)
      """, id, .integer(Int64(TrustBook.namesPerKey)))
    try file.execute(
      """
      DELETE FROM identity WHERE channel = ? AND NOT isVerified AND rowid NOT IN (
        SELECT rowid FROM identity WHERE channel = ? AND NOT isVerified
        ORDER BY lastSeen DESC LIMIT ?)
      """, id, id, .integer(Int64(TrustBook.limit)))
  }
}
