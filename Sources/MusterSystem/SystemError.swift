import Glibc

/// The C library's descriptions of its error numbers.
package enum SystemError {
  /// The description of the current `errno`.
  package static var last: String { text(of: errno) }

  /// The description of one error number, such as `ENOENT`.
  package static func text(of code: Int32) -> String {
    strerror(code).map { String(cString: $0) } ?? "error \(code)"
  }
}
