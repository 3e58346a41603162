import MusterBase
import MusterCrypto
import MusterWire

/// Registrations signed with a tag's key, which all members of a channel derive and nobody else.
enum RendezvousTag {
  /// The whole datagram.
  static func sign(_ registration: RendezvousRegistration, by tag: Identity) -> [UInt8] {
    let bytes = registration.encoded()
    return bytes + tag.sign(message(bytes))
  }

  static func isSigned(_ bytes: [UInt8], by tag: Bytes32, _ signature: [UInt8]) -> Bool {
    Signatures.isValid(signature, of: message(bytes), by: NodeID(tag))
  }

  private static func message(_ bytes: [UInt8]) -> [UInt8] {
    Array("muster/1 rendezvous".utf8) + bytes
  }
}
