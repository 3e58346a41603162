import MusterBase

/// The permission bits of a file.
package enum FilePermissions {
  /// Whether users other than the owner may read it.
  package static func othersRead(_ mode: UInt32) -> Bool { mode & 0o044 != 0 }
}

/// Warnings about secrets that do not keep others out.
extension MusterError {
  /// The least length of a passphrase, and the least number of different characters in it, that is
  /// taken without a warning. Passphrases can be tried against a recorded announcement or a backup
  /// unnoticed, at some tenths of a second each on one core (`PassphraseKey`).
  private static let leastPassphrase = (length: 10, different: 6)

  private static func isEasilyGuessed(_ passphrase: String) -> Bool {
    let least = leastPassphrase
    return passphrase.count < least.length || Set(passphrase).count < least.different
  }

  /// Creates the warning about a passphrase that can be guessed; nil for any other.
  public init?(weakPassphrase passphrase: String, channel: String) {
    guard Self.isEasilyGuessed(passphrase) else { return nil }
    self.init(
      "the passphrase of \(channel) is easily guessed by anyone who has heard this node",
      hint: "agree on four or more random words, or use muster channel create")
  }

  /// Creates the warning about a passphrase that does not protect a backup; nil for any other.
  public init?(weakBackupPassphrase passphrase: String) {
    guard Self.isEasilyGuessed(passphrase) else { return nil }
    self.init(
      "the passphrase is easily guessed by anyone who gets hold of the backup",
      hint: "use four or more random words, and write them down")
  }

  /// Creates the warning about a key file that others can read, by its permission bits; nil if only
  /// its owner can read it.
  public init?(keyFile path: String, mode: UInt32) {
    guard FilePermissions.othersRead(mode) else { return nil }
    let shown = DisplayText.sanitized(path, limit: 256)
    self.init(
      "others on this machine may read the key file \(shown)",
      hint: "chmod 600 it, and make a new key")
  }
}
