import MusterBase
import MusterChannel
import MusterCrypto
import Testing

@Test func identitiesFollowFromTheirSeeds() throws {
  let cast = try Cast()
  for (name, identity) in [("anna", cast.anna), ("bert", cast.bert)] {
    try expect("id-\(name)", is: identity.id.key.bytes)
    try expect("x25519-\(name)", is: identity.x25519PublicKey.bytes)
    #expect(identity.id.x25519PublicKey == identity.x25519PublicKey)
  }
}

@Test func channelKeysFollowFromTheName() throws {
  let channel = ChannelKey.fromName("lab")
  try expect("name-key", is: channel.withSecret { [UInt8]($0) })
  try expect("name-key", is: Blake2b.hash(Array("muster/1 name".utf8) + Array("lab".utf8)))
  try expect("channel-id", is: channel.keyID.key.bytes)
  try expect("noise-psk", is: revealed(channel.noisePSK))
  try expect("announce-key", is: revealed(try announcementKey()))
}

@Test func passphrasesGoThroughArgon2id() throws {
  let salt = Blake2b.hash(Array("muster/1 salt".utf8) + Array("lab".utf8), count: 16)
  try expect("passphrase-salt", is: salt)
  #expect(ChannelKey.passphrasePasses == 3)
  #expect(ChannelKey.passphraseMemoryBytes == 67_108_864)
  let channel = ChannelKey.fromPassphrase("correct horse battery staple", name: "lab")
  try expect("passphrase-key", is: try #require(channel).withSecret { [UInt8]($0) })
}

@Test func handshakeKeysNameTheResponder() throws {
  let cast = try Cast()
  let uses: [(String, ChannelKey.HandshakeMAC)] = [
    ("initiation-mac-key", .initiation), ("response-mac-key", .response), ("cookie-key", .cookie),
  ]
  for (name, use) in uses {
    let key = cast.channel.handshakeKey(use, responder: cast.bert.x25519PublicKey)
    try expect(name, is: revealed(key))
  }
}

/// Announces and challenges are sealed under it.
func announcementKey() throws -> SecretBytes {
  Blake2b.derive("muster/1 announce key", from: try Document.secret("name-key"), in: .heap)
}
