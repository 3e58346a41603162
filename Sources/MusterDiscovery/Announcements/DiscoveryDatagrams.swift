import MusterBase
import MusterCrypto
import MusterWire

/// An announce with its author's signature, as it is sealed into a datagram.
public struct SignedAnnouncement: Equatable, Sendable {
  public var announcement: Announcement
  public var signature: [UInt8]
  /// The bytes of the announce exactly as they came, which is what the signature covers.
  private let signedBytes: [UInt8]

  /// Signs `announcement` as `identity` under one channel key.
  public init(_ announcement: Announcement, by identity: Identity, in key: KeyID) {
    self.announcement = announcement
    signedBytes = announcement.encoded()
    signature = identity.sign(Self.message(signedBytes, in: key))
  }

  /// Reads what a datagram held; says nothing yet of whether the signature is good.
  public init(decoding bytes: [UInt8]) throws(WireError) {
    guard bytes.count > Announcement.signatureBytes else { throw .truncated }
    signedBytes = Array(bytes.dropLast(Announcement.signatureBytes))
    signature = Array(bytes.suffix(Announcement.signatureBytes))
    announcement = try Announcement(decoding: signedBytes)
  }

  /// Whether the author named in the announce signed it under `key`.
  public func isGenuine(in key: KeyID) -> Bool {
    Signatures.isValid(
      signature, of: Self.message(signedBytes, in: key), by: announcement.author)
  }

  /// The whole datagram: kind byte, then nonce, sealed announce and signature, tag.
  public func datagram(sealedBy key: ChannelKey, entropy: inout Entropy) -> [UInt8] {
    DiscoveryDatagram.seal(signedBytes + signature, as: .announcement, with: key, entropy: &entropy)
  }

  private static func message(_ bytes: [UInt8], in key: KeyID) -> [UInt8] {
    Array("muster/1 announce".utf8) + key.key.bytes + bytes
  }
}

/// Announce and challenge datagrams: one kind byte in front of what the channel key seals.
public enum DiscoveryDatagram {
  /// Seals `plaintext` as a datagram of `kind`, which the seal covers too.
  public static func seal(
    _ plaintext: [UInt8], as kind: DatagramKind, with key: ChannelKey, entropy: inout Entropy
  ) -> [UInt8] {
    [kind.rawValue] + key.sealAnnouncement(plaintext, kind: kind.rawValue, entropy: &entropy)
  }

  /// What a datagram holds, or nil when `key` did not seal it as the kind that it claims to be.
  public static func open(_ datagram: [UInt8], with key: ChannelKey) -> [UInt8]? {
    guard let kind = datagram.first, datagram.count <= Limits.datagramBytes else { return nil }
    return key.openAnnouncement(datagram.dropFirst(), kind: kind)
  }
}
