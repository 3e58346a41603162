import MusterBase

/// The 32-byte secret of a channel, and the keys derived from it.
///
/// Each derived key is the BLAKE2b hash of a separate label, keyed by the secret, so disclosing one
/// derived key reveals nothing about the others.
public struct ChannelKey: Sendable {
  /// The id, derived from the secret, that identifies the key on the wire.
  public let keyID: KeyID
  /// The pre-shared key of the channel's Noise handshakes (the psk modifier, revision 34, section
  /// 9).
  public let noisePSK: SecretBytes
  private let secret: SecretBytes
  private let announcementKey: SecretBytes

  /// The id of the open channel with this key. It equals the key's id, since an open channel has
  /// only one key; the id of a created channel is derived from its genesis.
  public var channelID: ChannelID { ChannelID(keyID.hash) }

  /// Creates a key from 32 random bytes; nil for any other length.
  public init?(secret: [UInt8]) {
    guard secret.count == 32 else { return nil }
    self.init(SecretBytes(secret))
  }

  private init(_ secret: SecretBytes) {
    self.secret = secret
    noisePSK = Blake2b.derive("muster/1 noise psk", from: secret, in: .guarded)
    announcementKey = Blake2b.derive("muster/1 announce key", from: secret, in: .guarded)
    let id = Blake2b.mac(Array("muster/1 channel id".utf8)[...], key: secret, count: 32)
    guard let key = Bytes32(id) else { preconditionFailure("32 bytes by argument") }
    keyID = KeyID(key)
  }

  /// The key of a channel that has a name but no passphrase; anyone who knows the name can join.
  public static func fromName(_ name: String) -> ChannelKey {
    ChannelKey(SecretBytes(Blake2b.hash(Array("muster/1 name".utf8) + Array(name.utf8))))
  }

  /// The key derived from a name and a passphrase; nil if the memory is not available
  /// (`PassphraseKey`).
  public static func fromPassphrase(_ passphrase: String, name: String) -> ChannelKey? {
    let salt = Blake2b.hash(Array("muster/1 salt".utf8) + Array(name.utf8), count: 16)
    return PassphraseKey.derive(passphrase, salt: salt).map { ChannelKey($0) }
  }

  /// The purpose of a handshake MAC; the raw value is the label of its key.
  public enum HandshakeMAC: String, Sendable {
    case initiation = "muster/1 mac1 initiation"
    case response = "muster/1 mac1 response"
    case cookie = "muster/1 cookie reply"
  }

  /// The key pair of the channel's rendezvous tag in one period. A registration must be signed with
  /// this key, which requires the channel key; tags of different periods cannot be linked.
  public func rendezvousTag(period: UInt64) -> Identity {
    Identity(
      seed: Blake2b.derive(
        "muster/1 rendezvous tag", Self.bigEndian(period), from: secret, in: .guarded))
  }

  /// The length of a tag in the DHT in bytes: that of an OpenDHT InfoHash.
  public static let dhtTagBytes = 20

  /// The DHT key under which members store their announcements on `day`, counted from 1970-01-01 in
  /// UTC. Without the channel key, this key can neither be computed nor linked to that of another
  /// day.
  public func dhtTag(day: UInt64) -> [UInt8] {
    let message = Array("muster/1 dht tag".utf8) + Self.bigEndian(day)
    return Blake2b.mac(message[...], key: secret, count: Self.dhtTagBytes)
  }

  private static func bigEndian(_ number: UInt64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) }
  }

  /// The key of one kind of handshake MAC towards one responder: a valid MAC proves knowledge of
  /// both the channel key and the responder's public key, before any Diffie-Hellman is computed.
  public func handshakeKey(_ use: HandshakeMAC, responder: Bytes32) -> SecretBytes {
    Blake2b.derive(use.rawValue, responder.bytes, from: secret, in: .heap)
  }
}

extension ChannelKey {
  /// The number of bytes that sealing adds: nonce and tag.
  public static let announcementOverhead = 24 + AEAD.tagBytes

  /// Seals an announcement into a random nonce (24 bytes), the ciphertext and the tag (16 bytes).
  /// `kind` is authenticated but not included.
  public func sealAnnouncement(
    _ plaintext: [UInt8], kind: UInt8, entropy: inout Entropy
  ) -> [UInt8] {
    let nonce = entropy.bytes(24)
    guard
      let sealed = AEAD.seal(
        plaintext, nonce: nonce, associatedData: [kind], key: announcementKey, with: .xChaChaPoly)
    else { preconditionFailure("the nonce has 24 bytes") }
    return nonce + sealed
  }

  /// The inverse of `sealAnnouncement`; nil if the tag does not match.
  public func openAnnouncement(_ sealed: ArraySlice<UInt8>, kind: UInt8) -> [UInt8]? {
    guard sealed.count >= Self.announcementOverhead else { return nil }
    return AEAD.open(
      sealed.dropFirst(24), nonce: Array(sealed.prefix(24)), associatedData: [kind],
      key: announcementKey, with: .xChaChaPoly)
  }
}

extension ChannelKey: Equatable {
  public static func == (a: ChannelKey, b: ChannelKey) -> Bool { a.secret == b.secret }
}

extension ChannelKey: CustomStringConvertible {
  /// A text that names the key's id, never the secret.
  public var description: String { "channel key \(keyID)" }
}

extension ChannelKey {
  /// Gives access to the 32 secret bytes, for an invite or a key file.
  public func withSecret<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
    secret.withUnsafeBytes(body)
  }
}
