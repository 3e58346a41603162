import MusterBase
import MusterCrypto
import Testing

/// The identities of `docs/PROTOCOL.md` (Anna, Bert) and a third one, by the first byte of the
/// seed.
private func identity(_ first: UInt8) throws -> Identity {
  try #require(Identity(seed: (0..<32).map { first + $0 }))
}

private let context = [UInt8](repeating: 9, count: 32)

private func seal(
  _ text: [UInt8], from author: Identity, to receiver: NodeID, seed: UInt64 = 1
) throws -> [UInt8] {
  var entropy = Entropy.seeded(seed)
  return try #require(
    DirectSeal.seal(text, from: author, to: receiver, context: context, entropy: &entropy))
}

@Test func bothMembersCanDecryptBothDirections() throws {
  let (anna, bert) = (try identity(0), try identity(0x20))
  for (author, receiver) in [(anna, bert), (bert, anna)] {
    for text in [[], [7], [UInt8](repeating: 5, count: Limits.textBytes)] as [[UInt8]] {
      let sealed = try seal(text, from: author, to: receiver.id)
      #expect(sealed.count == text.count + DirectSeal.overhead)
      for (own, other) in [(anna, bert), (bert, anna)] {
        let opened = DirectSeal.open(
          sealed, own: own, other: other.id, from: author.id, context: context)
        #expect(opened == text)
      }
    }
  }
}

/// The sealed text was computed with libsodium from Python, as `docs/PROTOCOL.md` section 11 says.
@Test func aTextSealedElsewhereIsOpened() throws {
  let (anna, bert) = (try identity(0), try identity(0x20))
  let channel = ChannelKey.fromName("lab").channelID.hash.bytes
  let sealed = try bytes(
    "404142434445464748494a4b4c4d4e4f5051525354555657"
      + "303c4850733fd6d22097c1eaf63e86764c6f526f3634547b8282")
  let text = DirectSeal.open(
    sealed, own: bert, other: anna.id, from: anna.id, context: channel)
  #expect(text == Array("Hello Bert".utf8))
}

@Test func nobodyElseOpensIt() throws {
  let (anna, bert, eve) = (try identity(0), try identity(0x20), try identity(0x40))
  let sealed = try seal([1, 2, 3], from: anna, to: bert.id)
  for other in [anna.id, bert.id, eve.id] {
    #expect(
      DirectSeal.open(sealed, own: eve, other: other, from: anna.id, context: context) == nil)
  }
  // The text opens neither with Bert or Eve as its author, nor in another channel.
  for author in [bert.id, eve.id] {
    #expect(
      DirectSeal.open(sealed, own: bert, other: anna.id, from: author, context: context) == nil)
  }
  #expect(
    DirectSeal.open(sealed, own: bert, other: anna.id, from: anna.id, context: []) == nil)
}

@Test func alteredOrTruncatedBytesAreNotOpened() throws {
  let (anna, bert) = (try identity(0), try identity(0x20))
  let sealed = try seal([1, 2, 3], from: anna, to: bert.id)
  func open(_ bytes: [UInt8]) -> [UInt8]? {
    DirectSeal.open(bytes, own: bert, other: anna.id, from: anna.id, context: context)
  }
  for index in sealed.indices {
    var altered = sealed
    altered[index] ^= 0x10
    #expect(open(altered) == nil)
    #expect(open(Array(sealed.prefix(index))) == nil)
  }
  #expect(open(sealed + [0]) == nil)
}

@Test func noTwoSealsAreAlike() throws {
  let (anna, bert) = (try identity(0), try identity(0x20))
  var entropy = Entropy.seeded(1)
  let seals = (0..<4).map { _ in
    DirectSeal.seal([1], from: anna, to: bert.id, context: context, entropy: &entropy)
  }
  for (index, one) in seals.enumerated() {
    #expect(one != nil)
    for another in seals[..<index] { #expect(one != another) }
  }
}

@Test func toWhatIsNoIdentityNothingIsSealed() throws {
  let anna = try identity(0)
  var entropy = Entropy.seeded(1)
  let sealed = DirectSeal.seal(
    [1], from: anna, to: NodeID(.zero), context: context, entropy: &entropy)
  #expect(sealed == nil)
  #expect(
    DirectSeal.open(
      [UInt8](repeating: 1, count: 50), own: anna, other: NodeID(.zero), from: NodeID(.zero),
      context: context) == nil)
}
