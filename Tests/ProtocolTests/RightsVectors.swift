import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterWire
import Testing

let textVectors = Topic(
  name: "texts", section: 11, description: "A text from one member to another.",
  vectors: [
    Vector(
      "direct-key", "The key of texts between two members.",
      [
        "own-seed": .block("seed-anna"), "other-id": .block("id-bert"),
        "label": .text("muster/1 direct"), "channel-id": .block("channel-id"),
      ]
    ) { inputs in
      let own = try inputs.identity("own-seed")
      let other = NodeID(try inputs.bytes32("other-id"))
      let point = try #require(other.x25519PublicKey)
      let shared = try #require(X25519.shared(own.linkKeys.secret, point))
      let ids = [own.id, other].sorted().flatMap(\.key.bytes)
      return revealed(
        Blake2b.derive(
          try inputs.text("label"), try inputs.bytes("channel-id") + ids, from: shared, in: .heap))
    },
    Vector(
      "direct-content", "The content of the message: nonce, sealed text and tag.",
      [
        "key": .block("direct-key"), "nonce": .block("direct-nonce"),
        "author": .block("id-anna"), "text": .text("Hello, Bert"),
      ]
    ) { inputs in
      let nonce = try inputs.bytes("nonce")
      let sealed = AEAD.seal(
        Array(try inputs.text("text").utf8), nonce: nonce,
        associatedData: try inputs.bytes("author"), key: try inputs.secret("key"),
        with: .xChaChaPoly)
      return nonce + (try #require(sealed))
    },
  ])

/// Both members can open the text.
@Test func aSealedTextIsReadAsWritten() throws {
  let cast = try Cast()
  let content = try Document.bytes("direct-content")
  for (own, other) in [(cast.bert, cast.anna.id), (cast.anna, cast.bert.id)] {
    let text = DirectSeal.open(
      content, own: own, other: other, from: cast.anna.id, context: cast.channelID.hash.bytes)
    #expect(text == Array("Hello, Bert".utf8))
  }
}

private let owner: Value = .block("id-anna")

let rightsVectors = Topic(
  name: "rights", section: 12,
  description: "A created channel: genesis, grant, redemption and epoch, signed for its id.",
  vectors: [
    Vector(
      "genesis", "The genesis with its owner's signature.",
      [
        "seed": .block("seed-anna"), "nonce": .hex([UInt8](0xD0...0xDF)),
        "created-at": .number(1_735_689_600), "settings": .number(2), "name": .text("lab"),
        "label": .text("muster/1 genesis"),
      ]
    ) { _ in try Entries().genesis.bytes },
    Vector(
      "genesis-channel-id", "The id of the created channel.",
      ["label": .text("muster/1 genesis id"), "genesis": .block("genesis")]
    ) { inputs in
      Blake2b.hash(Array(try inputs.text("label").utf8) + (try inputs.bytes("genesis")))
    },
    entry(
      "entry-grant", "A bearer grant, before its signature.",
      [
        "author": owner, "sequence": .hex(sequence(5)), "lamport": .number(45),
        "subject": .block("id-bert"), "role": .number(3), "expires-at": .number(1_767_225_600),
        "epoch": .number(0), "flags": .number(1), "uses": .number(3),
        "role-expires-at": .number(1_798_761_600),
      ]
    ) { $0.grant },
    entry(
      "entry-redemption", "Its redemption by Anna, before the entry's signature.",
      [
        "author": owner, "sequence": .hex(sequence(7)), "lamport": .number(47),
        "grant": .block("entry-grant"), "granter-seed": .block("seed-anna"),
        "one-time-seed": .block("seed-bert"), "channel-id": .block("genesis-channel-id"),
        "label": .text("muster/1 redeem"),
      ]
    ) { $0.redemption },
    entry(
      "entry-epoch", "The first epoch after the genesis, before its signature.",
      [
        "author": owner, "sequence": .hex(sequence(6)), "lamport": .number(46),
        "number": .number(1), "key-id": .block("channel-id"),
        "previous": .hex([UInt8](repeating: 0, count: 32)),
        "removed": .list([.block("id-bert")]), "kept": .list([]),
      ]
    ) { $0.epoch },
  ])

@Test func aGenesisIsReadAsWritten() throws {
  let read = SignedGenesis.verified(try Document.bytes("genesis"))
  #expect(read?.channelID.hash == (try Document.bytes32("genesis-channel-id")))
}

let inviteVectors = Topic(
  name: "invites", section: 12, description: "Invites, as ASCII.",
  vectors: [
    Vector(
      "invite", "An invite to an open channel.",
      [
        "name": .text("lab"), "epoch": .number(0), "secret": .block("name-key"),
        "peers": .list([.text("192.0.2.7:40000")]), "rendezvous": .list([]),
      ]
    ) { inputs in
      let invite = Invite(
        name: try inputs.text("name"), genesis: nil, epoch: UInt32(try inputs.number("epoch")),
        key: try inputs.bytes("secret"), oneTimeSeed: nil, grant: nil,
        peers: try inputs.texts("peers"), rendezvous: try inputs.texts("rendezvous"))
      return Array(invite.url.utf8)
    },
    Vector(
      "invite-created", "An invite to a created channel.",
      [
        "name": .text("lab"), "epoch": .number(0), "secret": .block("name-key"),
        "genesis": .block("genesis"), "one-time-seed": .block("seed-bert"),
        "grant": .block("entry-grant"), "granter-seed": .block("seed-anna"),
        "peers": .list([.text("192.0.2.7:40000")]), "rendezvous": .list([]),
      ]
    ) { inputs in
      let invite = Invite(
        name: try inputs.text("name"), genesis: try inputs.bytes("genesis"),
        epoch: UInt32(try inputs.number("epoch")), key: try inputs.bytes("secret"),
        oneTimeSeed: try inputs.bytes("one-time-seed"), grant: try Entries().grant.bytes,
        peers: try inputs.texts("peers"), rendezvous: try inputs.texts("rendezvous"))
      return Array(invite.url.utf8)
    },
  ])

@Test(arguments: ["invite", "invite-created"])
func anInviteIsReadAsWritten(name: String) throws {
  let url = String(decoding: try Document.bytes(name), as: UTF8.self)
  #expect(try Invite(url: url).url == url)
}
