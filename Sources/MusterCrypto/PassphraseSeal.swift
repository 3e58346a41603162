/// Seals data with a passphrase, for files that leave the machine.
///
/// Layout in bytes: Argon2id salt 16, XChaCha20-Poly1305 nonce 24, ciphertext, tag 16. Salt and
/// nonce are random, so no two sealed texts share a key.
public enum PassphraseSeal {
  /// Why sealed data cannot be opened.
  public enum Fault: Error, Equatable, Sendable {
    /// The memory for Argon2id is not available.
    case noMemory
    /// The passphrase or the context is another one, or the data is damaged.
    case notAuthentic
  }

  private static let algorithm = AEAD.Algorithm.xChaChaPoly

  /// Seals a plaintext; `context` is a label that is authenticated but not included. Returns nil if
  /// the memory for Argon2id is not available.
  public static func seal(
    _ plaintext: [UInt8], passphrase: String, context: String, entropy: inout Entropy
  ) -> [UInt8]? {
    let salt = entropy.bytes(PassphraseKey.saltBytes)
    let nonce = entropy.bytes(algorithm.nonceBytes)
    guard let key = PassphraseKey.derive(passphrase, salt: salt),
      let sealed = AEAD.seal(
        plaintext, nonce: nonce, associatedData: Array(context.utf8), key: key, with: algorithm)
    else { return nil }
    return salt + nonce + sealed
  }

  /// The inverse of `seal`.
  public static func open(
    _ sealed: [UInt8], passphrase: String, context: String
  ) throws(Fault) -> [UInt8] {
    let headerBytes = PassphraseKey.saltBytes + algorithm.nonceBytes
    guard sealed.count >= headerBytes + AEAD.tagBytes else { throw .notAuthentic }
    let salt = Array(sealed.prefix(PassphraseKey.saltBytes))
    guard let key = PassphraseKey.derive(passphrase, salt: salt) else { throw .noMemory }
    let plaintext = AEAD.open(
      sealed.dropFirst(headerBytes), nonce: Array(sealed[salt.count..<headerBytes]),
      associatedData: Array(context.utf8), key: key, with: algorithm)
    guard let plaintext else { throw .notAuthentic }
    return plaintext
  }
}
