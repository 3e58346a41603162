import CSodium
import MusterBase

/// Diffie-Hellman key agreement on Curve25519 (RFC 7748).
public enum X25519 {
  /// A secret scalar and its public key.
  public struct KeyPair: Sendable {
    /// The scalar, 32 bytes.
    public let secret: SecretBytes
    /// The curve point's u coordinate, 32 bytes.
    public let publicKey: Bytes32

    /// Generates an ephemeral key pair for one handshake.
    public init(generating entropy: inout Entropy) {
      self.init(secret: entropy.secret(32, in: .heap))
    }

    /// Computes the public key of a 32-byte secret scalar.
    public init(secret: SecretBytes) {
      precondition(secret.count == 32)
      var bytes = [UInt8](repeating: 0, count: 32)
      let code = secret.withUnsafeBytes { crypto_scalarmult_base(&bytes, $0.start) }
      guard code == 0, let key = Bytes32(bytes) else { preconditionFailure("32 bytes by type") }
      self.secret = secret
      publicKey = key
    }
  }

  /// The shared secret; nil if it would be zero, that is, for a public key of low order (RFC 7748
  /// section 6.1).
  public static func shared(_ secret: SecretBytes, _ publicKey: Bytes32) -> SecretBytes? {
    precondition(secret.count == 32)
    var code: Int32 = -1
    let shared = SecretBytes(32, in: .heap) { output in
      secret.withUnsafeBytes { code = crypto_scalarmult(output.start, $0.start, publicKey.bytes) }
    }
    return code == 0 ? shared : nil
  }
}
