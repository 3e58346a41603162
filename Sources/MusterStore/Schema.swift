import MusterBase

/// The tables of the store and their migrations. A released migration is never edited; schema
/// changes are added as new migrations.
enum Schema {
  /// One step from an earlier schema to a later one.
  struct Migration {
    /// The name under which the file records that the step was taken.
    let name: String
    let statements: [String]
  }

  /// All migrations in order.
  static let migrations = [
    Migration(
      name: "1 channels, entries, identities",
      statements: [
        """
        CREATE TABLE channel (
          id BLOB PRIMARY KEY, name TEXT NOT NULL, genesis BLOB, createdAt INTEGER NOT NULL,
          ticketGrant BLOB, ticketSeed BLOB, peers TEXT NOT NULL, rendezvous TEXT NOT NULL)
        """,
        """
        CREATE TABLE epochKey (
          channel BLOB NOT NULL, number INTEGER NOT NULL, secret BLOB NOT NULL,
          PRIMARY KEY (channel, number))
        """,
        """
        CREATE TABLE entry (
          channel BLOB NOT NULL, id BLOB NOT NULL, bytes BLOB NOT NULL,
          isShown BOOLEAN NOT NULL DEFAULT 0, PRIMARY KEY (channel, id)) WITHOUT ROWID
        """,
        """
        CREATE TABLE identity (
          channel BLOB NOT NULL, name TEXT NOT NULL, key BLOB NOT NULL,
          firstSeen INTEGER NOT NULL, lastSeen INTEGER NOT NULL, isVerified BOOLEAN NOT NULL,
          PRIMARY KEY (channel, name, key))
        """,
      ]),
    Migration(
      name: "2 restored channels",
      statements: ["ALTER TABLE channel ADD COLUMN isRestored BOOLEAN NOT NULL DEFAULT 0"]),
  ]

  /// Brings a file to the newest schema. Throws `NewerSchema`, without a write, if a newer version
  /// has migrated it.
  static func migrate(_ file: SQLiteFile) throws {
    let done = try applied(to: file)
    guard done.allSatisfy({ name in migrations.contains { $0.name == name } }) else {
      throw NewerSchema()
    }
    guard done.count < migrations.count else { return }
    try file.transaction(isWriting: true) {
      // The table's name is that of the library which kept it in the first versions.
      try file.execute(
        "CREATE TABLE IF NOT EXISTS grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY)")
      for migration in migrations where !done.contains(migration.name) {
        for statement in migration.statements { try file.execute(statement) }
        try file.execute("INSERT INTO grdb_migrations VALUES (?)", .text(migration.name))
      }
    }
  }

  private static func applied(to file: SQLiteFile) throws -> [String] {
    let tables = try file.query(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'grdb_migrations'"
    ) { try $0.text(0) }
    guard !tables.isEmpty else { return [] }
    return try file.query("SELECT identifier FROM grdb_migrations") { try $0.text(0) }
  }
}

/// The file has a migration that this version does not know.
struct NewerSchema: Error {}
