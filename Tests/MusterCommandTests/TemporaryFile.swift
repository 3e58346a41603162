import Glibc

/// A settings file that exists as long as this object, readable by every user.
final class TemporaryFile {
  static let folder = "/tmp/muster-settings-"
  let path: String

  struct NotWritten: Error {}

  init(_ text: String) throws {
    var template = Array("\(Self.folder)XXXXXX.toml".utf8CString)
    let descriptor = mkstemps(&template, 5)
    guard descriptor >= 0 else { throw NotWritten() }
    defer { close(descriptor) }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    fchmod(descriptor, 0o644)
    let bytes = Array(text.utf8)
    guard write(descriptor, bytes, bytes.count) == bytes.count else { throw NotWritten() }
  }

  deinit { unlink(path) }
}
