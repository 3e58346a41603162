import CSQLite

/// An error of SQLite.
struct SQLiteError: Error {
  /// The primary result code, such as `SQLITE_FULL`.
  var code: Int32
  /// What SQLite says of it, in English.
  var message: String
}

/// A value in a column does not have the type that the schema gives it: the file is damaged.
struct ColumnError: Error {}

/// An open SQLite file, used by one thread at a time.
final class SQLiteFile {
  /// Nil once the file is closed.
  private var handle: OpaquePointer?
  /// The prepared statements by their SQL, since the store has few and repeats them.
  private var statements: [String: OpaquePointer] = [:]

  /// Opens an existing file. An access that finds it locked by another process waits for at most
  /// `patience` milliseconds. Throws `SQLiteError` if the file cannot be opened.
  init(_ path: String, isReadOnly: Bool = false, patience: Int32) throws {
    var handle: OpaquePointer?
    let mode = isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE
    let code = sqlite3_open_v2(path, &handle, mode | SQLITE_OPEN_NOMUTEX, nil)
    guard let handle, code == SQLITE_OK else {
      let message = handle.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
      sqlite3_close(handle)
      throw SQLiteError(code: code & 0xFF, message: message)
    }
    self.handle = handle
    sqlite3_busy_timeout(handle, patience)
  }

  deinit { close() }

  /// Closes the file; every later access throws.
  func close() {
    for statement in statements.values { sqlite3_finalize(statement) }
    statements = [:]
    sqlite3_close(handle)
    handle = nil
  }

  /// Executes one statement; `?` stands for the values in turn.
  func execute(_ sql: String, _ values: SQLiteValue...) throws {
    try rows(sql, values) { _ in }
  }

  /// The rows that a query yields, each converted by `body`; `?` stands for the values in turn.
  func query<T>(
    _ sql: String, _ values: SQLiteValue..., row body: (SQLiteRow) throws -> T
  ) throws -> [T] {
    var all: [T] = []
    try rows(sql, values) { all.append(try body($0)) }
    return all
  }

  /// Executes `body` as one transaction, which an error undoes. `BEGIN` alone makes all reads see
  /// the same state; `isWriting` takes the write lock at once.
  func transaction<T>(isWriting: Bool, _ body: () throws -> T) throws -> T {
    try execute(isWriting ? "BEGIN IMMEDIATE" : "BEGIN")
    do {
      let result = try body()
      try execute("COMMIT")
      return result
    } catch {
      // On some errors, such as a full disk, SQLite has rolled back itself.
      if let handle, sqlite3_get_autocommit(handle) == 0 { try? execute("ROLLBACK") }
      throw error
    }
  }

  private func rows(
    _ sql: String, _ values: [SQLiteValue], _ body: (SQLiteRow) throws -> Void
  ) throws {
    let statement = try prepared(sql)
    defer {
      sqlite3_reset(statement)
      sqlite3_clear_bindings(statement)
    }
    for (index, value) in values.enumerated() {
      try check(value.bind(to: statement, at: Int32(index + 1)))
    }
    while true {
      switch sqlite3_step(statement) {
      case SQLITE_ROW: try body(SQLiteRow(statement: statement))
      case SQLITE_DONE: return
      case let code: try check(code)
      }
    }
  }

  private func prepared(_ sql: String) throws -> OpaquePointer {
    if let statement = statements[sql] { return statement }
    guard let handle else { throw SQLiteError(code: SQLITE_MISUSE, message: "it is closed") }
    var statement: OpaquePointer?
    try check(sqlite3_prepare_v2(handle, sql, -1, &statement, nil))
    guard let statement else { throw SQLiteError(code: SQLITE_MISUSE, message: "no statement") }
    statements[sql] = statement
    return statement
  }

  private func check(_ code: Int32) throws {
    guard code != SQLITE_OK else { return }
    throw SQLiteError(code: code & 0xFF, message: String(cString: sqlite3_errmsg(handle)))
  }
}

/// A value to bind to a parameter of a statement.
enum SQLiteValue {
  case null
  case integer(Int64)
  case text(String)
  case blob([UInt8])

  /// A blob, or null.
  static func blob(_ bytes: [UInt8]?) -> Self { bytes.map { .blob($0) } ?? .null }

  fileprivate func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
    // SQLITE_TRANSIENT: SQLite copies the bytes before the call returns.
    let copies = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    switch self {
    case .null: return sqlite3_bind_null(statement, index)
    case .integer(let number): return sqlite3_bind_int64(statement, index, number)
    case .text(let text):
      return sqlite3_bind_text(statement, index, text, Int32(text.utf8.count), copies)
    case .blob(let bytes) where bytes.isEmpty: return sqlite3_bind_zeroblob(statement, index, 0)
    case .blob(let bytes):
      return sqlite3_bind_blob(statement, index, bytes, Int32(bytes.count), copies)
    }
  }
}

/// The row at which a query stands; valid only until the next one.
///
/// A damaged file can hold any value in any column: every access checks the type, and throws
/// `ColumnError` where it is another.
struct SQLiteRow {
  fileprivate let statement: OpaquePointer

  func integer(_ column: Int32) throws -> Int64 {
    try check(column, SQLITE_INTEGER)
    return sqlite3_column_int64(statement, column)
  }

  func text(_ column: Int32) throws -> String {
    try check(column, SQLITE_TEXT)
    // In this order, so that the count is that of the UTF-8 form.
    guard let start = sqlite3_column_text(statement, column) else { throw Self.noMemory }
    let text = UnsafeBufferPointer(start: start, count: count(column))
    return String(decoding: text, as: UTF8.self)
  }

  func blob(_ column: Int32) throws -> [UInt8] {
    try check(column, SQLITE_BLOB)
    let start = sqlite3_column_blob(statement, column)
    // An empty blob has no address.
    guard count(column) > 0 else { return [] }
    guard let start else { throw Self.noMemory }
    return Array(UnsafeRawBufferPointer(start: start, count: count(column)))
  }

  /// A blob; nil for null.
  func optionalBlob(_ column: Int32) throws -> [UInt8]? {
    sqlite3_column_type(statement, column) == SQLITE_NULL ? nil : try blob(column)
  }

  private func count(_ column: Int32) -> Int { Int(sqlite3_column_bytes(statement, column)) }

  private static var noMemory: SQLiteError {
    SQLiteError(code: SQLITE_NOMEM, message: "out of memory")
  }

  private func check(_ column: Int32, _ type: Int32) throws {
    guard sqlite3_column_type(statement, column) == type else { throw ColumnError() }
  }
}
