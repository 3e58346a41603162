import MusterCrypto
import Testing

@Test func onlyThePassphraseAndTheContextOpenASeal() throws {
  var entropy = Entropy.seeded(3)
  let sealed = try #require(
    PassphraseSeal.seal([1, 2, 3], passphrase: "one", context: "a", entropy: &entropy))
  #expect(sealed.count == 16 + 24 + 3 + 16)
  #expect(try PassphraseSeal.open(sealed, passphrase: "one", context: "a") == [1, 2, 3])
  for (passphrase, context) in [("two", "a"), ("one", "b"), ("", "a")] {
    #expect(throws: PassphraseSeal.Fault.notAuthentic) {
      _ = try PassphraseSeal.open(sealed, passphrase: passphrase, context: context)
    }
  }
}

@Test func everyPartOfASealIsProtected() throws {
  var entropy = Entropy.seeded(4)
  let sealed = try #require(
    PassphraseSeal.seal([9], passphrase: "one", context: "a", entropy: &entropy))
  for index in [0, 16, 40, sealed.count - 1] {
    var changed = sealed
    changed[index] ^= 0x80
    #expect(throws: PassphraseSeal.Fault.notAuthentic) {
      _ = try PassphraseSeal.open(changed, passphrase: "one", context: "a")
    }
  }
  for length in [0, 55, sealed.count - 1] {
    #expect(throws: PassphraseSeal.Fault.notAuthentic) {
      _ = try PassphraseSeal.open(Array(sealed.prefix(length)), passphrase: "one", context: "a")
    }
  }
}
