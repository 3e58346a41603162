import MusterBase
import MusterCrypto
import Testing

let keyVectors = Topic(
  name: "keys", section: 2,
  description: "Ids and link keys from the seeds of identities.",
  vectors: [
    id("anna"), linkKey("anna"), id("bert"), linkKey("bert"),
    Vector(
      "verification-code", "The verification code of two members in a channel, as ASCII.",
      ["ids": .list([.block("id-anna"), .block("id-bert")]), "channel-id": .block("channel-id")]
    ) { inputs in
      let cast = try Cast()
      let channel = ChannelID(try inputs.bytes32("channel-id"))
      return Array(VerificationCode.text(channel: channel, cast.bert.id, cast.anna.id).utf8)
    },
  ])

private func id(_ name: String) -> Vector {
  Vector(
    "id-\(name)", "The id, an Ed25519 public key, of the identity with this seed.",
    ["seed": .block("seed-\(name)")]
  ) { try $0.identity("seed").id.key.bytes }
}

private func linkKey(_ name: String) -> Vector {
  Vector(
    "x25519-\(name)", "The X25519 public key of the identity with this seed.",
    ["seed": .block("seed-\(name)"), "id": .block("id-\(name)")]
  ) { inputs in
    let id = NodeID(try inputs.bytes32("id"))
    let own = try inputs.identity("seed").x25519PublicKey
    #expect(id.x25519PublicKey == own)
    return own.bytes
  }
}

let channelVectors = Topic(
  name: "channels", section: 3,
  description: "Channel secrets from names and passphrases, and the keys that follow from them.",
  vectors: [
    Vector(
      "name-key", "The channel secret from a name alone.", ["name": .text("lab")]
    ) { inputs in
      let name = try inputs.text("name")
      #expect(
        ChannelKey.fromName(name).withSecret { [UInt8]($0) }
          == Blake2b.hash(Array("muster/1 name".utf8) + Array(name.utf8)))
      return ChannelKey.fromName(name).withSecret { [UInt8]($0) }
    },
    Vector(
      "passphrase-salt", "Argon2id's salt from a name.", ["name": .text("lab")]
    ) { Blake2b.hash(Array("muster/1 salt".utf8) + Array(try $0.text("name").utf8), count: 16) },
    Vector(
      "passphrase-key", "The channel secret from a name and a passphrase, by Argon2id.",
      [
        "name": .text("lab"), "passphrase": .text("correct horse battery staple"),
        "salt": .block("passphrase-salt"), "passes": .number(3),
        "memory-bytes": .number(67_108_864), "lanes": .number(1),
      ]
    ) { inputs in
      #expect(try UInt64(PassphraseKey.passes) == inputs.number("passes"))
      #expect(try UInt64(PassphraseKey.memoryBytes) == inputs.number("memory-bytes"))
      let channel = ChannelKey.fromPassphrase(
        try inputs.text("passphrase"), name: try inputs.text("name"))
      return try #require(channel).withSecret { [UInt8]($0) }
    },
    Vector(
      "channel-id", "The id of the open channel with this secret; the key id of an epoch.",
      ["secret": .block("name-key")]
    ) {
      Blake2b.mac(Array("muster/1 channel id".utf8)[...], key: try $0.secret("secret"), count: 32)
    },
    Vector(
      "announcement-key", "The key of announcements and challenges.",
      ["secret": .block("name-key")]
    ) {
      revealed(Blake2b.derive("muster/1 announce key", from: try $0.secret("secret"), in: .heap))
    },
    Vector(
      "noise-psk", "The pre-shared key of handshakes.", ["secret": .block("name-key")]
    ) { revealed(try #require(ChannelKey(secret: $0.bytes("secret"))).noisePSK) },
    Vector(
      "rendezvous-tag", "The channel's tag at a rendezvous in one period.",
      ["secret": .block("name-key"), "period": .number(472_222)]
    ) { inputs in
      let channel = try #require(ChannelKey(secret: inputs.bytes("secret")))
      return channel.rendezvousTag(period: try inputs.number("period")).id.key.bytes
    },
    Vector(
      "dht-tag", "The channel's tag in a DHT on one day.",
      ["secret": .block("name-key"), "day": .number(19_675)]
    ) { inputs in
      let channel = try #require(ChannelKey(secret: inputs.bytes("secret")))
      return channel.dhtTag(day: try inputs.number("day"))
    },
  ])
