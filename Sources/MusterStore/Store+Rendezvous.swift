import GRDB
import Glibc
import MusterBase

extension Store {
  /// The rendezvous servers (`HOST:PORT`) stored with the channels of a data directory, newest
  /// channel first and without duplicates; empty if the directory has no store. The file is opened
  /// read-only and the directory is not locked, because a running node may hold the lock.
  public static func rendezvous(in directory: String) throws(MusterError) -> [String] {
    let path = directory + "/muster.sqlite"
    guard access(path, F_OK) == 0 || errno != ENOENT else { return [] }
    do {
      var configuration = GRDB.Configuration()
      configuration.readonly = true
      configuration.busyMode = .timeout(1)
      let texts = try DatabaseQueue(path: path, configuration: configuration).read { database in
        try Row.fetchAll(database, sql: "SELECT rendezvous FROM channel ORDER BY createdAt DESC")
          .flatMap { try lines($0, "rendezvous") }
      }
      return texts.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    } catch { throw explained(error, path) }
  }
}
