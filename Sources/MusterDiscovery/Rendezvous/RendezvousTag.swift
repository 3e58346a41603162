import MusterBase
import MusterCrypto
import MusterWire

/// Signatures of registrations by a tag's key, which only members of the channel can derive.
enum RendezvousTag {
  /// Signs a registration and returns the complete datagram.
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
