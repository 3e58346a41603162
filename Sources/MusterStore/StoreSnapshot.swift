import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto

/// What the store holds at one moment, for the duration of a read (`Store.read`).
///
/// Its methods throw if the file cannot be read or is damaged; `Store.read` makes a `MusterError`
/// of it.
public struct StoreSnapshot {
  private let file: SQLiteFile

  init(_ file: SQLiteFile) { self.file = file }

  // MARK: Channels

  /// All channels, oldest first.
  public func channels() throws -> [StoredChannel] {
    try file.query("SELECT \(Self.columns) FROM channel ORDER BY createdAt, name") {
      try channel($0)
    }.compactMap { $0 }
  }

  /// The channel with this id; nil if unknown.
  public func channel(_ id: ChannelID) throws -> StoredChannel? {
    try file.query("SELECT \(Self.columns) FROM channel WHERE id = ?", .blob(id.hash.bytes)) {
      try channel($0)
    }.first ?? nil
  }

  private static let columns =
    "id, name, createdAt, genesis, ticketGrant, ticketSeed, peers, rendezvous, isRestored"

  private func channel(_ row: SQLiteRow) throws -> StoredChannel? {
    let id = try row.blob(0)
    guard let hash = Bytes32(id) else { return nil }
    var channel = StoredChannel(
      id: ChannelID(hash), name: try row.text(1), createdAt: try Self.seconds(row, 2))
    channel.genesis = try row.optionalBlob(3)
    if let grant = try row.optionalBlob(4), let seed = try row.optionalBlob(5) {
      channel.credential = StoredChannel.InviteCredential(grant: grant, seed: seed)
    }
    channel.bootstrapAddresses = try Self.lines(row, 6)
    channel.rendezvous = try Self.lines(row, 7)
    channel.isRestored = try row.integer(8) != 0
    channel.keys = try file.query(
      "SELECT number, secret FROM epochKey WHERE channel = ? ORDER BY number", .blob(id)
    ) { row in
      let number = UInt32(clamping: try row.integer(0))
      return ChannelKey(secret: try row.blob(1)).map { EpochKey(number: number, key: $0) }
    }.compactMap { $0 }
    return channel
  }

  private static func seconds(_ row: SQLiteRow, _ column: Int32) throws -> UInt64 {
    UInt64(clamping: try row.integer(column))
  }

  /// The non-empty lines of a text.
  private static func lines(_ row: SQLiteRow, _ column: Int32) throws -> [String] {
    try row.text(column).split(separator: "\n").map { String($0) }
  }

  /// The rendezvous servers (`HOST:PORT`) of all channels, newest channel first and without
  /// duplicates.
  func rendezvous() throws -> [String] {
    let texts = try file.query("SELECT rendezvous FROM channel ORDER BY createdAt DESC") {
      try Self.lines($0, 0)
    }
    return texts.joined().reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
  }

  // MARK: Entries and identities

  /// Adds the stored entries of the setup's channel, and the ids of those not marked as shown, to
  /// the setup with which a node joins.
  package func fill(_ setup: inout ChannelSetup) throws {
    setup.entries = try entries(of: setup.id)
    setup.undelivered = try undelivered(in: setup.id)
  }

  /// The ids of the stored entries that are not marked as shown. They include all entries other
  /// than messages, because only messages are ever marked.
  public func undelivered(in channel: ChannelID) throws -> [EntryID] {
    try file.query(
      "SELECT id FROM entry WHERE channel = ? AND NOT isShown", .blob(channel.hash.bytes)
    ) { EntryID(try $0.blob(0)) }.compactMap { $0 }
  }

  /// The encoded entries stored for a channel, each with its signature, in no particular order.
  public func entries(of channel: ChannelID) throws -> [[UInt8]] {
    try file.query("SELECT bytes FROM entry WHERE channel = ?", .blob(channel.hash.bytes)) {
      try $0.blob(0)
    }
  }

  /// The identities known in a channel, least recently seen first.
  public func identities(of channel: ChannelID) throws -> [KnownIdentity] {
    try file.query(
      """
      SELECT name, key, firstSeen, lastSeen, isVerified FROM identity
      WHERE channel = ? ORDER BY lastSeen
      """, .blob(channel.hash.bytes)
    ) { row in
      try Bytes32(try row.blob(1)).map { key in
        KnownIdentity(
          name: try row.text(0), key: NodeID(key), firstSeen: try Self.seconds(row, 2),
          lastSeen: try Self.seconds(row, 3), isVerified: try row.integer(4) != 0)
      }
    }.compactMap { $0 }
  }
}
