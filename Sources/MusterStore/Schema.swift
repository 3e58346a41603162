import GRDB

/// The tables of the store and their migrations. A released migration is never edited; schema
/// changes are added as new migrations.
package enum Schema {
  /// All migrations in order.
  package static var migrator: DatabaseMigrator {
    var migrator = DatabaseMigrator()
    migrator.registerMigration("1 channels, entries, identities") { database in
      try database.create(table: "channel") { table in
        table.column("id", .blob).primaryKey()
        table.column("name", .text).notNull()
        table.column("genesis", .blob)
        table.column("createdAt", .integer).notNull()
        table.column("ticketGrant", .blob)
        table.column("ticketSeed", .blob)
        table.column("peers", .text).notNull()
        table.column("rendezvous", .text).notNull()
      }
      try database.create(table: "epochKey") { table in
        table.column("channel", .blob).notNull()
        table.column("number", .integer).notNull()
        table.column("secret", .blob).notNull()
        table.primaryKey(["channel", "number"])
      }
      try database.create(table: "entry", options: .withoutRowID) { table in
        table.column("channel", .blob).notNull()
        table.column("id", .blob).notNull()
        table.column("bytes", .blob).notNull()
        table.column("isShown", .boolean).notNull().defaults(to: false)
        table.primaryKey(["channel", "id"])
      }
      try database.create(table: "identity") { table in
        table.column("channel", .blob).notNull()
        table.column("name", .text).notNull()
        table.column("key", .blob).notNull()
        table.column("firstSeen", .integer).notNull()
        table.column("lastSeen", .integer).notNull()
        table.column("isVerified", .boolean).notNull()
        table.primaryKey(["channel", "name", "key"])
      }
    }
    migrator.registerMigration("2 restored channels") { database in
      try database.alter(table: "channel") { table in
        table.add(column: "isRestored", .boolean).notNull().defaults(to: false)
      }
    }
    return migrator
  }
}
