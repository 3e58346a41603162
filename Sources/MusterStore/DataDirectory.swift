import MusterBase
import MusterCrypto
import MusterSystem

/// The directory with a node's identity and store, locked while a node uses it.
///
/// The lock is a `flock`, which the kernel releases when a process dies.
public final class DataDirectory: Sendable {
  /// The path as given to `open`: absolute, or relative to the working directory.
  public let path: String
  private let lock: Int32

  private init(path: String, lock: Int32) {
    self.path = path
    self.lock = lock
  }

  deinit {
    ftruncate(lock, 0)
    close(lock)
  }

  /// `$XDG_DATA_HOME/muster` if that variable holds an absolute path, otherwise
  /// `$HOME/.local/share/muster`; nil if `HOME` is needed but not set.
  public static var defaultPath: String? {
    if let base = environment("XDG_DATA_HOME"), base.hasPrefix("/") { return base + "/muster" }
    return environment("HOME").map { $0 + "/.local/share/muster" }
  }

  private static func environment(_ name: String) -> String? {
    guard let value = getenv(name) else { return nil }
    let text = String(cString: value)
    return text.isEmpty ? nil : text
  }

  /// Opens and locks a directory; creates missing directories of its path with mode 0700.
  ///
  /// Returns nil if the lock is already held; throws if the directory is not usable, or others can
  /// put files into it: the secrets would go where a symbolic link of theirs leads.
  public static func open(
    _ path: String, as use: DirectoryHolder.Use = .command
  ) throws(MusterError) -> DataDirectory? {
    try makeDirectories(path)
    try requireOwn(path)
    let descriptor = MusterSystem.open(
      lockFile(of: path), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw MusterError(
        "cannot write to the data directory \(path) (\(SystemError.last))",
        hint: "check its permissions, or use --data with a directory of yours")
    }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let reason = errno
      close(descriptor)
      if reason == EWOULDBLOCK { return nil }
      throw MusterError(
        "cannot lock the data directory \(path) (\(SystemError.text(of: reason)))",
        hint: "use --data with a directory on a local disk")
    }
    DirectoryHolder(use: use, processID: getpid()).write(to: descriptor)
    return DataDirectory(path: path, lock: descriptor)
  }

  /// What holds the lock of a directory; nil if that is unknown, such as while it changes hands.
  public static func holder(of path: String) -> DirectoryHolder? {
    guard let bytes = try? read(lockFile(of: path), atMost: 64) else { return nil }
    return DirectoryHolder(decoding: String(decoding: bytes, as: UTF8.self))
  }

  /// What holds the lock of a directory, in words: "a node (process 4711)".
  public static func holderText(of path: String) -> String {
    holder(of: path)?.text ?? "another process"
  }

  private static func lockFile(of path: String) -> String { path + "/lock" }

  private static func makeDirectories(_ path: String) throws(MusterError) {
    var made = path.hasPrefix("/") ? "" : "."
    for part in path.split(separator: "/") {
      made += "/" + part
      guard mkdir(made, 0o700) != 0, errno != EEXIST else { continue }
      throw MusterError(
        "cannot make the directory \(made) (\(SystemError.last))",
        hint: "check the permissions above it, or use --data with a directory of yours")
    }
  }

  private static func requireOwn(_ path: String) throws(MusterError) {
    var status = stat()
    guard stat(path, &status) == 0 else {
      throw MusterError(
        "cannot use the data directory \(path) (\(SystemError.last))",
        hint: "check its permissions, or use --data with a directory of yours")
    }
    guard status.st_uid == geteuid() else {
      throw MusterError(
        "the data directory \(path) belongs to another user, who could read what is put there",
        hint: "run muster as that user, or use --data with a directory of yours")
    }
    guard status.st_mode & (S_IWGRP | S_IWOTH) == 0 else {
      throw MusterError(
        "other users can write to the data directory \(path)",
        hint: "take that from them: chmod go-w \(path)")
    }
  }

  /// Reads the identity from the directory, or creates and stores a new one if there is none.
  /// Throws if the file is damaged, or cannot be read or written.
  public func identity() throws(MusterError) -> Identity {
    if let identity = try storedIdentity() { return identity }
    var entropy = Entropy.system
    let identity = Identity(generating: &entropy)
    try store(identity)
    return identity
  }

  /// The identity in the directory; nil if there is none. Throws if the file is damaged or cannot
  /// be read.
  public func storedIdentity() throws(MusterError) -> Identity? {
    guard let seed = try Self.read(identityFile, atMost: 64) else { return nil }
    guard seed.count == 32, let identity = Identity(seed: seed) else {
      throw MusterError(
        "the identity file \(identityFile) is damaged",
        hint: "restore it from a copy, or move it away to get a new identity")
    }
    return identity
  }

  /// Stores an identity in place of a former one. Throws if the file cannot be written.
  public func store(_ identity: Identity) throws(MusterError) {
    let failure = identity.withSeed { Self.writeDurably($0, to: identityFile) }
    guard let failure else { return }
    throw MusterError(
      "cannot write the identity file \(identityFile) (\(failure))",
      hint: "check the disk's free space and the directory's permissions")
  }

  private var identityFile: String { path + "/identity" }

  /// The last display name used with this directory, sanitized and at most `Limits.nameBytes` bytes
  /// long; nil if none is stored or the file cannot be read.
  public func displayName() -> String? {
    guard let bytes = try? Self.read(path + "/name", atMost: Limits.nameBytes) else { return nil }
    let name = DisplayText.sanitized(
      String(decoding: bytes, as: UTF8.self), limit: Limits.nameBytes)
    return name.isEmpty ? nil : name
  }

  /// Stores the display name. Errors are ignored, because the name is only a default.
  public func remember(displayName: String) {
    guard displayName != self.displayName() else { return }
    _ = Array(displayName.utf8).withUnsafeBytes { Self.writeDurably($0, to: path + "/name") }
  }

  private static func read(_ file: String, atMost limit: Int) throws(MusterError) -> [UInt8]? {
    let descriptor = MusterSystem.open(file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else {
      if errno == ENOENT { return nil }
      throw MusterError(
        "cannot read \(file) (\(SystemError.last))", hint: "check its owner and permissions")
    }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: limit)
    let count = MusterSystem.read(descriptor, &bytes, limit)
    guard count >= 0 else {
      throw MusterError("cannot read \(file) (\(SystemError.last))", hint: "check the disk")
    }
    return Array(bytes.prefix(count))
  }

  /// Writes to a temporary file, syncs it and renames it: a crash leaves either the old or the new
  /// file. Returns the reason for a failure, otherwise nil.
  private static func writeDurably(_ bytes: UnsafeRawBufferPointer, to file: String) -> String? {
    let temporary = file + ".new"
    // What a crash has left.
    unlink(temporary)
    let descriptor = MusterSystem.open(
      temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return SystemError.last }
    let written = write(descriptor, bytes.baseAddress, bytes.count)
    guard written == bytes.count, fsync(descriptor) == 0 else {
      let reason = SystemError.last
      close(descriptor)
      return reason
    }
    close(descriptor)
    guard rename(temporary, file) == 0 else { return SystemError.last }
    return syncFolder(of: file)
  }

  /// Syncs the directory of a renamed file; otherwise a power failure could undo the rename.
  /// Returns the reason for a failure, otherwise nil.
  private static func syncFolder(of file: String) -> String? {
    let folder = file.lastIndex(of: "/").map { String(file[..<$0]) } ?? "."
    let descriptor = MusterSystem.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return SystemError.last }
    defer { close(descriptor) }
    return fsync(descriptor) == 0 || errno == EINVAL ? nil : SystemError.last
  }
}
