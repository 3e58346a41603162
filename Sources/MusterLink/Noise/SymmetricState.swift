import MusterCrypto

/// The symmetric state of a Noise handshake with ChaChaPoly and BLAKE2b (revision 34, section 5.2).
struct SymmetricState: Sendable {
  private(set) var hash: [UInt8]
  private var chainingKey: SecretBytes
  private var key: SecretBytes?
  private var nonce: UInt64 = 0

  init(protocolName: String) {
    let name = Array(protocolName.utf8)
    precondition(name.count <= Blake2b.hashBytes)
    hash = name + [UInt8](repeating: 0, count: Blake2b.hashBytes - name.count)
    chainingKey = SecretBytes(hash, in: .heap)
  }

  mutating func mixHash(_ data: some Sequence<UInt8>) {
    hash = Blake2b.hash(hash + data, count: Blake2b.hashBytes)
  }

  mutating func mixKey(_ input: SecretBytes) {
    input.withUnsafeBytes { mixKey($0) }
  }

  mutating func mixKey(_ input: UnsafeRawBufferPointer) {
    let outputs = HKDF.expand(chainingKey: chainingKey, input: input, outputs: 2)
    chainingKey = outputs[0]
    use(outputs[1])
  }

  mutating func mixKeyAndHash(_ input: SecretBytes) {
    let outputs = input.withUnsafeBytes {
      HKDF.expand(chainingKey: chainingKey, input: $0, outputs: 3)
    }
    chainingKey = outputs[0]
    outputs[1].withUnsafeBytes { mixHash($0) }
    use(outputs[2])
  }

  mutating func encryptAndHash(_ plaintext: [UInt8]) -> [UInt8]? {
    guard let key else {
      mixHash(plaintext)
      return plaintext
    }
    let sealed = AEAD.seal(
      plaintext, nonce: nonceBytes, associatedData: hash, key: key, with: .chaChaPoly)
    guard let sealed else { return nil }
    nonce += 1
    mixHash(sealed)
    return sealed
  }

  mutating func decryptAndHash(_ sealed: ArraySlice<UInt8>) -> [UInt8]? {
    guard let key else {
      mixHash(sealed)
      return Array(sealed)
    }
    let plaintext = AEAD.open(
      sealed, nonce: nonceBytes, associatedData: hash, key: key, with: .chaChaPoly)
    guard let plaintext else { return nil }
    nonce += 1
    mixHash(sealed)
    return plaintext
  }

  /// The transport keys; the initiator's sending key comes first.
  func split() -> (SecretBytes, SecretBytes) {
    let none = UnsafeRawBufferPointer(start: nil, count: 0)
    let outputs = HKDF.expand(chainingKey: chainingKey, input: none, outputs: 2)
    return (outputs[0].prefix(AEAD.keyBytes), outputs[1].prefix(AEAD.keyBytes))
  }

  private mutating func use(_ output: SecretBytes) {
    key = output.prefix(AEAD.keyBytes)
    nonce = 0
  }

  /// The nonce: four zero bytes and the counter in little-endian order (section 12.3).
  private var nonceBytes: [UInt8] {
    [0, 0, 0, 0] + (0..<8).map { UInt8(truncatingIfNeeded: nonce >> UInt64(8 * $0)) }
  }
}
