import MusterBase
import MusterCrypto
import Testing

@Test func sealingInPlaceGivesTheSameBytes() throws {
  var random = PRNG(seed: 7)
  for length in [0, 1, 15, 16, 17, 64, 1000, 1200] {
    let key = SecretBytes(random.bytes(32))
    let counter = random.next()
    let message = random.bytes(length)
    let data = random.bytes(13)
    let nonce: [UInt8] =
      [0, 0, 0, 0] + (0..<8).map { UInt8(truncatingIfNeeded: counter >> UInt64(8 * $0)) }
    let expected = AEAD.seal(
      message, nonce: nonce, associatedData: data, key: key, with: .chaChaPoly)
    var buffer = message + [UInt8](repeating: 0, count: AEAD.tagBytes)
    buffer.withUnsafeMutableBytes { buffer in
      data.withUnsafeBytes {
        AEAD.sealInPlace(buffer, counter: counter, associatedData: $0, key: key)
      }
    }
    #expect(buffer == expected)
    #expect(open(buffer, counter, data, key) == message)
    #expect(open(buffer, counter &+ 1, data, key) == nil)
    #expect(open(Array(buffer.dropLast()), counter, data, key) == nil)
  }
}

private func open(
  _ sealed: [UInt8], _ counter: UInt64, _ data: [UInt8], _ key: SecretBytes
) -> [UInt8]? {
  var output = [UInt8](repeating: 0, count: max(0, sealed.count - AEAD.tagBytes))
  let isAuthentic = sealed.withUnsafeBytes { sealed in
    output.withUnsafeMutableBytes { output in
      data.withUnsafeBytes {
        AEAD.open(sealed, into: output, counter: counter, associatedData: $0, key: key)
      }
    }
  }
  return isAuthentic ? output : nil
}
