import MusterBase
import MusterCrypto
import MusterWire

/// A genesis followed by its owner's signature; the channel's id is derived from both.
public struct SignedGenesis: Equatable, Sendable {
  /// The decoded genesis, whose signature has been verified.
  public let genesis: Genesis
  /// The encoded genesis followed by the signature.
  public let bytes: [UInt8]
  /// The BLAKE2b-256 hash of a domain label and `bytes`.
  public let channelID: ChannelID

  private static let signatureBytes = 64

  private init(_ genesis: Genesis, bytes: [UInt8]) {
    self.genesis = genesis
    self.bytes = bytes
    let hash = Blake2b.hash(Array("muster/1 genesis id".utf8) + bytes)
    channelID = ChannelID(Bytes32(hash) ?? .zero)
  }

  /// Signs `genesis` as its owner, who must be `identity`.
  public static func sign(_ genesis: Genesis, by identity: Identity) -> SignedGenesis {
    precondition(genesis.owner == identity.id)
    let bytes = genesis.encoded()
    return SignedGenesis(genesis, bytes: bytes + identity.sign(message(bytes[...])))
  }

  /// The genesis in `bytes` if its owner's signature is valid; nil otherwise.
  public static func verified(_ bytes: [UInt8]) -> SignedGenesis? {
    guard bytes.count > signatureBytes, bytes.count <= Genesis.signedBytes else { return nil }
    let encoding = bytes.dropLast(signatureBytes)
    guard let genesis = try? Genesis(decoding: encoding),
      Signatures.isValid(
        bytes.suffix(signatureBytes), of: message(encoding), by: genesis.owner)
    else { return nil }
    return SignedGenesis(genesis, bytes: bytes)
  }

  private static func message(_ encoding: ArraySlice<UInt8>) -> [UInt8] {
    Array("muster/1 genesis".utf8) + encoding
  }
}
