import Glibc
import Muster
import MusterBase
import MusterCrypto
import MusterStore
import Testing

struct DataDirectoryTests {
  /// A fresh directory under the system's place for temporary files, removed afterwards.
  private func withDirectory(_ body: (String) throws -> Void) throws {
    let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(base)/muster-test-XXXXXX".utf8CString)
    let made = mkdtemp(&template)
    try #require(made != nil)
    let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer {
      for file in ["identity", "identity.new", "lock"] { unlink("\(path)/data/\(file)") }
      rmdir("\(path)/data")
      rmdir(path)
    }
    try body(path + "/data")
  }

  private func write(_ bytes: [UInt8], to path: String) {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    _ = Glibc.write(file, bytes, bytes.count)
    close(file)
  }

  @Test func theIdentityIsMadeOnceAndKept() throws {
    try withDirectory { path in
      let first = try DataDirectory.open(path)?.identity().id
      let second = try DataDirectory.open(path)?.identity().id
      #expect(first != nil)
      #expect(first == second)
    }
  }

  @Test func nobodyElseMayReadTheIdentity() throws {
    try withDirectory { path in
      _ = try DataDirectory.open(path)?.identity()
      var status = stat()
      #expect(stat("\(path)/identity", &status) == 0)
      #expect(status.st_mode & 0o777 == 0o600)
      #expect(stat(path, &status) == 0)
      #expect(status.st_mode & 0o777 == 0o700)
    }
  }

  /// Those who can write to it could put symbolic links there, which the secrets would follow.
  @Test(arguments: [(0o700, true), (0o755, true), (0o775, false), (0o702, false), (0o777, false)])
  func aDirectoryThatOthersCanChangeIsRefused(mode: mode_t, isUsed: Bool) throws {
    try withDirectory { path in
      mkdir(path, 0o700)
      chmod(path, mode)
      if isUsed {
        let directory = try DataDirectory.open(path)
        #expect(directory != nil)
      } else {
        #expect(throws: MusterError.self) { try DataDirectory.open(path) }
        #expect(access("\(path)/lock", F_OK) != 0)
      }
    }
  }

  @Test(.enabled(if: geteuid() == 0)) func aDirectoryOfAnotherUserIsRefused() throws {
    try withDirectory { path in
      mkdir(path, 0o700)
      chown(path, 65534, 65534)
      #expect(throws: MusterError.self) { try DataDirectory.open(path) }
      #expect(access("\(path)/lock", F_OK) != 0)
    }
  }

  @Test(arguments: ["lock", "identity", "identity.new"])
  func noSymbolicLinkIsFollowed(name: String) throws {
    try withDirectory { path in
      let target = "\(path)-target"
      defer { unlink(target) }
      write([7], to: target)
      mkdir(path, 0o700)
      symlink(target, "\(path)/\(name)")
      if name == "identity.new" {
        let identity = try DataDirectory.open(path)?.identity()
        #expect(identity != nil)
      } else {
        #expect(throws: MusterError.self) { try DataDirectory.open(path)?.identity() }
      }
      var status = stat()
      #expect(stat(target, &status) == 0 && status.st_size == 1)
    }
  }

  @Test func aSecondOpeningFindsItInUse() throws {
    try withDirectory { path in
      let first = try DataDirectory.open(path)
      #expect(first != nil)
      #expect(try DataDirectory.open(path) == nil)
      withExtendedLifetime(first) {}
    }
  }

  @Test(arguments: [DirectoryHolder.Use.node, .command])
  func theHolderIsNamedWhileItHolds(use: DirectoryHolder.Use) throws {
    try withDirectory { path in
      let held = try DataDirectory.open(path, as: use)
      let holder = try #require(DataDirectory.holder(of: path))
      #expect(holder.use == use)
      #expect(holder.processID == getpid())
      #expect(holder.text.contains("\(getpid())"))
      withExtendedLifetime(held) {}
    }
    try withDirectory { path in
      _ = try DataDirectory.open(path, as: use)
      #expect(DataDirectory.holder(of: path) == nil)
    }
  }

  /// Process ids are at most 2^22 (proc(5), pid_max).
  @Test(arguments: ["node 4194305\n", "node -1\n", "node\n", "guest 1\n", "\u{0}", "node 1 1\n"])
  func whatAKilledHolderLeavesIsNotBelieved(text: String) throws {
    try withDirectory { path in
      _ = try DataDirectory.open(path)
      write(Array(text.utf8), to: "\(path)/lock")
      #expect(DataDirectory.holder(of: path) == nil)
      let held = try DataDirectory.open(path, as: .node)
      #expect(DataDirectory.holder(of: path)?.use == .node)
      withExtendedLifetime(held) {}
    }
  }

  @Test func aKilledWriterLeavesTheOldIdentity() throws {
    try withDirectory { path in
      let kept = try DataDirectory.open(path)?.identity().id
      // The file that a process leaves when it is killed while writing a new one.
      write([1, 2, 3], to: "\(path)/identity.new")
      #expect(try DataDirectory.open(path)?.identity().id == kept)
    }
  }

  @Test(arguments: [0, 31, 33, 64])
  func aDamagedIdentityIsAClearError(count: Int) throws {
    try withDirectory { path in
      _ = try DataDirectory.open(path)?.identity()
      write([UInt8](repeating: 7, count: count), to: "\(path)/identity")
      #expect(throws: MusterError.self) { try DataDirectory.open(path)?.identity() }
    }
  }
}
