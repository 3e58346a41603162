import CSodium
import MusterBase

/// A node's identity: an Ed25519 key pair, and the X25519 pair that libsodium converts it to, so
/// that one key authenticates signatures and handshakes.
public struct Identity: Sendable {
  /// The Ed25519 public key, which identifies the node.
  public let id: NodeID
  /// The static key pair of this node's Noise handshakes.
  public let linkKeys: X25519.KeyPair
  /// The secret key in libsodium's format: 32 bytes of seed, 32 bytes of public key.
  private let secret: SecretBytes

  /// Generates an identity, for a node's first start.
  public init(generating entropy: inout Entropy) {
    self.init(seed: entropy.secret(32, in: .guarded))
  }

  /// Restores an identity from a stored 32-byte seed; nil for any other length.
  public init?(seed: [UInt8]) {
    guard seed.count == 32 else { return nil }
    self.init(seed: SecretBytes(seed))
  }

  init(seed: SecretBytes) {
    var publicKey = [UInt8](repeating: 0, count: 32)
    let secret = SecretBytes(64, in: .guarded) { output in
      let code = seed.withUnsafeBytes {
        crypto_sign_seed_keypair(&publicKey, output.start, $0.start)
      }
      precondition(code == 0)
    }
    let scalar = SecretBytes(32, in: .guarded) { output in
      let code = secret.withUnsafeBytes {
        crypto_sign_ed25519_sk_to_curve25519(output.start, $0.start)
      }
      precondition(code == 0)
    }
    guard let key = Bytes32(publicKey) else { preconditionFailure("32 bytes by type") }
    id = NodeID(key)
    linkKeys = X25519.KeyPair(secret: scalar)
    self.secret = secret
  }

  /// The public half of `linkKeys`.
  public var x25519PublicKey: Bytes32 { linkKeys.publicKey }

  /// An Ed25519 signature of 64 bytes. The message must begin with a domain label, so that no
  /// signature can be reused in another context.
  public func sign(_ message: [UInt8]) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: 64) { output, used in
      let code = secret.withUnsafeBytes {
        crypto_sign_detached(
          UnsafeMutableRawBufferPointer(output).start, nil, message, UInt64(message.count), $0.start
        )
      }
      precondition(code == 0)
      used = 64
    }
  }

  /// Gives access to the 32-byte seed, for storing it.
  public func withSeed<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
    secret.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[0..<32])) }
  }
}

extension Identity: CustomStringConvertible {
  /// A text that names the node, never the secret.
  public var description: String { "identity of \(id)" }
}

/// Verifies Ed25519 signatures (RFC 8032).
public enum Signatures {
  /// Whether `author` signed exactly these bytes. Non-canonical keys and signatures are rejected
  /// (RFC 8032 section 5.1.7 and libsodium's stricter checks), so that signatures are not
  /// malleable.
  public static func isValid(
    _ signature: some Collection<UInt8>, of message: [UInt8], by author: NodeID
  ) -> Bool {
    guard Sodium.isReady, signature.count == 64 else { return false }
    return crypto_sign_verify_detached(
      Array(signature), message, UInt64(message.count), author.key.bytes
    ) == 0
  }
}

extension NodeID {
  /// The X25519 public key of this Ed25519 key; nil for points outside the prime-order subgroup.
  public var x25519PublicKey: Bytes32? {
    guard Sodium.isReady else { return nil }
    var converted = [UInt8](repeating: 0, count: 32)
    guard crypto_sign_ed25519_pk_to_curve25519(&converted, key.bytes) == 0 else { return nil }
    return Bytes32(converted)
  }
}
