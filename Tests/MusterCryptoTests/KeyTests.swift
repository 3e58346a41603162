import MusterBase
import MusterCrypto
import Testing

private let seed = [UInt8](repeating: 7, count: 32)

/// RFC 8032 7.1, test 2.
@Test func identitySignsAsTheRFCSays() throws {
  let identity = try #require(
    Identity(
      seed: try bytes("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")))
  #expect(
    identity.id.key.hex == "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
  let signature = identity.sign([0x72])
  #expect(
    Hex.encode(signature) == "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
      + "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00")
  #expect(Signatures.isValid(signature, of: [0x72], by: identity.id))
  #expect(!Signatures.isValid(signature, of: [0x73], by: identity.id))
  #expect(!Signatures.isValid(signature.dropLast(), of: [0x72], by: identity.id))
}

@Test func theLinkKeyIsTheConvertedIdentity() throws {
  let identity = try #require(Identity(seed: seed))
  #expect(identity.id.x25519PublicKey == identity.x25519PublicKey)
  #expect(identity.withSeed { Array($0) } == seed)
  #expect(Identity(seed: Array(seed.dropLast())) == nil)
}

@Test func pointsOfLowOrderAreNoIdentity() {
  // The neutral element and a point of order two (y = 1, y = -1).
  let one = NodeID(Bytes32([1] + [UInt8](repeating: 0, count: 31)) ?? .zero)
  let minusOne = NodeID(
    Bytes32([0xEC] + [UInt8](repeating: 0xFF, count: 30) + [0x7F]) ?? .zero)
  #expect(one.x25519PublicKey == nil)
  #expect(minusOne.x25519PublicKey == nil)
  #expect(NodeID(.zero).x25519PublicKey == nil)
}

@Test func channelKeysDependOnEveryPart() throws {
  let name = ChannelKey.fromName("lab")
  #expect(name == ChannelKey.fromName("lab"))
  #expect(name != ChannelKey.fromName("lab2"))
  #expect(name.channelID == ChannelKey.fromName("lab").channelID)
  let passphrase = try #require(ChannelKey.fromPassphrase("secret", name: "lab"))
  #expect(passphrase == ChannelKey.fromPassphrase("secret", name: "lab"))
  #expect(passphrase != ChannelKey.fromPassphrase("secreT", name: "lab"))
  #expect(passphrase != ChannelKey.fromPassphrase("secret", name: "lab2"))
  #expect(passphrase != name)
  #expect(ChannelKey(secret: Array(seed.dropFirst())) == nil)
}

@Test func announcesOpenForTheSameChannelAndKindOnly() {
  var entropy = Entropy.seeded(1)
  let key = ChannelKey.fromName("lab")
  let sealed = key.sealAnnouncement([1, 2, 3], kind: 1, entropy: &entropy)
  #expect(sealed.count == 3 + ChannelKey.announcementOverhead)
  #expect(key.openAnnouncement(sealed[...], kind: 1) == [1, 2, 3])
  #expect(key.openAnnouncement(sealed[...], kind: 2) == nil)
  #expect(ChannelKey.fromName("other").openAnnouncement(sealed[...], kind: 1) == nil)
  for length in sealed.indices { #expect(key.openAnnouncement(sealed[..<length], kind: 1) == nil) }
  for index in sealed.indices {
    var altered = sealed
    altered[index] ^= 0x10
    #expect(key.openAnnouncement(altered[...], kind: 1) == nil)
  }
}

@Test func handshakeKeysDifferByUseAndResponder() {
  let key = ChannelKey.fromName("lab")
  let uses: [ChannelKey.HandshakeMAC] = [.initiation, .response, .cookie]
  let other = Bytes32(seed) ?? .zero
  let keys = uses.flatMap {
    [key.handshakeKey($0, responder: .zero), key.handshakeKey($0, responder: other)]
  }
  for (index, one) in keys.enumerated() {
    for another in keys[..<index] { #expect(one != another) }
  }
}

@Test func descriptionsTellNoSecrets() throws {
  let identity = try #require(Identity(seed: seed))
  let key = try #require(ChannelKey(secret: seed))
  var dumped = ""
  dump(identity, to: &dumped)
  dump(key, to: &dumped)
  let text = "\(identity) \(key) \(SecretBytes(seed)) \(dumped)"
  #expect(!text.contains(Hex.encode(seed)))
  #expect(!text.contains("7, 7"))
}
