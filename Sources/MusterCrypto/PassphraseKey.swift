import CSodium

/// Derives keys from passphrases with Argon2id (RFC 9106, version 1.3, one lane).
public enum PassphraseKey {
  /// The number of passes; passes and memory are the second recommended option of RFC 9106 section
  /// 4.
  public static let passes: UInt64 = 3
  /// The memory of one evaluation in bytes.
  public static let memoryBytes = 64 << 20
  /// The length of a salt in bytes.
  static let saltBytes = 16

  /// The 32-byte key of a passphrase and a salt of 16 bytes; nil if the memory is not available.
  /// Each guess costs an attacker 64 MiB and some tenths of a second.
  static func derive(_ passphrase: String, salt: [UInt8]) -> SecretBytes? {
    precondition(Sodium.isReady && salt.count == saltBytes)
    let password = passphrase.utf8.map { CChar(truncatingIfNeeded: $0) }
    var code: Int32 = -1
    let key = SecretBytes(32, in: .guarded) { output in
      code = crypto_pwhash(
        output.start, 32, password, UInt64(password.count), salt, passes, memoryBytes,
        crypto_pwhash_ALG_ARGON2ID13)
    }
    return code == 0 ? key : nil
  }
}
