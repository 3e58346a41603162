import MusterBase
import MusterCrypto
import Testing

@Test(arguments: [
  ("chacha20_poly1305_test.json", AEAD.Algorithm.chaChaPoly),
  ("xchacha20_poly1305_test.json", AEAD.Algorithm.xChaChaPoly),
])
func aeadAgreesWithWycheproof(file: String, algorithm: AEAD.Algorithm) throws {
  var count = 0
  for test in try Wycheproof<AEADGroup>(file).testGroups.flatMap(\.tests) {
    let key = SecretBytes(try bytes(test.key))
    let (nonce, data) = (try bytes(test.iv), try bytes(test.aad))
    let (message, sealed) = (try bytes(test.msg), try bytes(test.ct) + bytes(test.tag))
    let opened = AEAD.open(
      sealed[...], nonce: nonce, associatedData: data, key: key, with: algorithm)
    let resealed = AEAD.seal(
      message, nonce: nonce, associatedData: data, key: key, with: algorithm)
    if test.result == "valid" {
      #expect(opened == message, "\(file) \(test.tcId)")
      #expect(resealed == sealed, "\(file) \(test.tcId)")
    } else {
      #expect(opened == nil, "\(file) \(test.tcId)")
      #expect(resealed != sealed, "\(file) \(test.tcId)")
    }
    count += 1
  }
  #expect(count > 300)
}

@Test func x25519AgreesWithWycheproof() throws {
  var count = 0
  for test in try Wycheproof<X25519Group>("x25519_test.json").testGroups.flatMap(\.tests) {
    let secret = SecretBytes(try bytes(test.private))
    let shared = X25519.shared(secret, try bytes32(test.public))
    let expected = try bytes(test.shared)
    if expected.allSatisfy({ $0 == 0 }) {
      // The point has low order: Wycheproof accepts either result, and this code refuses such a
      // key.
      #expect(shared == nil, "\(test.tcId)")
    } else {
      #expect(shared == SecretBytes(expected), "\(test.tcId)")
    }
    count += 1
  }
  #expect(count > 500)
}

@Test func ed25519AgreesWithWycheproof() throws {
  var count = 0
  for group in try Wycheproof<Ed25519Group>("ed25519_test.json").testGroups {
    let author = NodeID(try bytes32(group.publicKey.pk))
    for test in group.tests {
      let isValid = Signatures.isValid(
        try bytes(test.sig), of: try bytes(test.msg), by: author)
      #expect(isValid == (test.result == "valid"), "\(test.tcId)")
      count += 1
    }
  }
  #expect(count > 140)
}
