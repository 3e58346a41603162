import MusterBase

/// End-to-end encryption of a text between two members; other members store and forward only the
/// ciphertext.
///
/// The key is derived from both identities (static X25519), so both members can decrypt both
/// directions at any later time; there is no forward secrecy. The cipher is XChaCha20-Poly1305 with
/// a random nonce; author and context are authenticated.
public enum DirectSeal {
  /// The number of bytes that sealing adds: nonce and tag.
  public static let overhead = 24 + AEAD.tagBytes

  /// Seals a text into nonce (24 bytes), ciphertext and tag (16 bytes); nil if the receiver's key
  /// is not a usable curve point.
  public static func seal(
    _ text: [UInt8], from author: Identity, to receiver: NodeID, context: [UInt8],
    entropy: inout Entropy
  ) -> [UInt8]? {
    guard let key = key(author, receiver, context) else { return nil }
    let nonce = entropy.bytes(24)
    let sealed = AEAD.seal(
      text, nonce: nonce, associatedData: author.id.key.bytes, key: key, with: .xChaChaPoly)
    return sealed.map { nonce + $0 }
  }

  /// Opens the text that `author`, one of the two nodes, sealed for the other; nil if the text
  /// cannot be authenticated.
  public static func open(
    _ sealed: [UInt8], own: Identity, other: NodeID, from author: NodeID, context: [UInt8]
  ) -> [UInt8]? {
    guard sealed.count >= overhead, let key = key(own, other, context) else { return nil }
    return AEAD.open(
      sealed.dropFirst(24), nonce: Array(sealed.prefix(24)), associatedData: author.key.bytes,
      key: key, with: .xChaChaPoly)
  }

  private static func key(
    _ own: Identity, _ other: NodeID, _ context: [UInt8]
  ) -> SecretBytes? {
    guard let point = other.x25519PublicKey,
      let shared = X25519.shared(own.linkKeys.secret, point)
    else { return nil }
    let pair = [own.id, other].sorted()
    return Blake2b.derive(
      "muster/1 direct", context + pair[0].key.bytes + pair[1].key.bytes, from: shared, in: .heap)
  }
}
