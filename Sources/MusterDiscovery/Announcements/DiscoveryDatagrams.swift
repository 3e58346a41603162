import MusterBase
import MusterCrypto
import MusterWire

/// An announcement with its author's signature: the plaintext of an announcement datagram.
public struct SignedAnnouncement: Equatable, Sendable {
  /// The decoded announcement.
  public var announcement: Announcement
  /// The signature of 64 bytes over a label, the key id and the encoded announcement.
  public var signature: [UInt8]
  /// The announcement's bytes as received, which the signature covers.
  private let signedBytes: [UInt8]

  /// Signs `announcement` as `identity` under one channel key.
  public init(_ announcement: Announcement, by identity: Identity, in key: KeyID) {
    self.announcement = announcement
    signedBytes = announcement.encoded()
    signature = identity.sign(Self.message(signedBytes, in: key))
  }

  /// Decodes a plaintext without verifying the signature; throws for malformed input.
  public init(decoding bytes: [UInt8]) throws(WireError) {
    guard bytes.count > Announcement.signatureBytes else { throw .truncated }
    signedBytes = Array(bytes.dropLast(Announcement.signatureBytes))
    signature = Array(bytes.suffix(Announcement.signatureBytes))
    announcement = try Announcement(decoding: signedBytes)
  }

  /// Whether the author named in the announcement signed it under `key`.
  public func isGenuine(in key: KeyID) -> Bool {
    Signatures.isValid(
      signature, of: Self.message(signedBytes, in: key), by: announcement.author)
  }

  /// Encrypts the datagram. Layout in bytes: kind 1, nonce 24, ciphertext of announcement and
  /// signature, tag 16.
  public func datagram(sealedBy key: ChannelKey, entropy: inout Entropy) -> [UInt8] {
    DiscoveryDatagram.seal(signedBytes + signature, as: .announcement, with: key, entropy: &entropy)
  }

  private static func message(_ bytes: [UInt8], in key: KeyID) -> [UInt8] {
    Array("muster/1 announce".utf8) + key.hash.bytes + bytes
  }
}

/// Announcement and challenge datagrams: a kind byte, and a ciphertext under the channel key.
public enum DiscoveryDatagram {
  /// Encrypts `plaintext` as a datagram of `kind`; the kind byte is authenticated, too.
  public static func seal(
    _ plaintext: [UInt8], as kind: DatagramKind, with key: ChannelKey, entropy: inout Entropy
  ) -> [UInt8] {
    [kind.rawValue] + key.sealAnnouncement(plaintext, kind: kind.rawValue, entropy: &entropy)
  }

  /// Decrypts a datagram; nil if `key` does not decrypt it as the kind that its first byte states.
  public static func open(_ datagram: [UInt8], with key: ChannelKey) -> [UInt8]? {
    guard let kind = datagram.first, datagram.count <= Limits.datagramBytes else { return nil }
    return key.openAnnouncement(datagram.dropFirst(), kind: kind)
  }
}
