import MusterBase
import MusterCrypto
import Testing

/// RFC 7693 appendix A.
@Test func blake2bAgreesWithTheRFC() {
  let expected =
    "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
    + "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923"
  #expect(Hex.encode(Blake2b.hash(Array("abc".utf8), count: 64)) == expected)
}

/// HMAC and HKDF against their definitions (RFC 2104, Noise 4.3), written plainly over the hash.
@Test func hkdfFollowsItsDefinition() {
  var random = PRNG(seed: 3)
  for length in [0, 1, 32, 56] {
    let chainingKey = random.bytes(64)
    let input = random.bytes(length)
    let master = hmac(chainingKey, input)
    let first = hmac(master, [1])
    let second = hmac(master, first + [2])
    let third = hmac(master, second + [3])
    for count in 2...3 {
      let outputs = input.withUnsafeBytes {
        HKDF.expand(chainingKey: SecretBytes(chainingKey), input: $0, outputs: count)
      }
      #expect(outputs == [first, second, third].prefix(count).map { SecretBytes($0) })
    }
  }
}

@Test func seededEntropyRepeatsAndSystemEntropyDoesNot() {
  var (one, same, other) = (Entropy.seeded(5), Entropy.seeded(5), Entropy.seeded(6))
  let drawn = one.bytes(40)
  #expect(drawn == same.bytes(40))
  #expect(drawn != other.bytes(40))
  #expect(one.bytes(40) != drawn)
  #expect(one.u64() != one.u64())
  var system = Entropy.system
  #expect(system.bytes(32) != system.bytes(32))
  #expect(system.bytes(0) == [])
}

@Test func constantTimeComparisonIsAComparison() {
  #expect(ConstantTime.equal([1, 2, 3], [1, 2, 3][...]))
  #expect(!ConstantTime.equal([1, 2, 3], [1, 2, 4]))
  #expect(!ConstantTime.equal([1, 2, 3], [1, 2]))
  #expect(ConstantTime.equal([], []))
}

private func hmac(_ key: [UInt8], _ message: [UInt8]) -> [UInt8] {
  let padded = key + [UInt8](repeating: 0, count: 128 - key.count)
  let inner = Blake2b.hash(padded.map { $0 ^ 0x36 } + message, count: 64)
  return Blake2b.hash(padded.map { $0 ^ 0x5C } + inner, count: 64)
}
