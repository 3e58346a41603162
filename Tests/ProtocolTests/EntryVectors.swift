import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterWire
import Testing

private let call: Value = .hex([UInt8](0xE0...0xEF))
private let anna: Value = .block("id-anna")
private let boot: Value = .hex([1, 2, 3, 4, 5, 6, 7, 8])
private let started: Value = .number(1_735_689_600_000)

let entryVectors = Topic(
  name: "entries", section: 9,
  description: "Entries of a channel's document; bytes before the signature unless said otherwise.",
  vectors: [
    presence(
      "entry-presence", "A presence with one video stream, in a call.", sequence: 1,
      flags: [1, 7, 15], streams: [camera]
    ) { $0.presence },
    Vector(
      "entry-presence-signature", "The author's signature of the presence.",
      [
        "seed": .block("seed-anna"), "label": .text("muster/1 entry"),
        "channel-id": .block("channel-id"), "entry": .block("entry-presence"),
      ]
    ) { inputs in
      try inputs.identity("seed").sign(
        Array(inputs.text("label").utf8) + inputs.bytes("channel-id") + inputs.bytes("entry"))
    },
    Vector(
      "entry-presence-id", "The id of the signed presence.",
      ["entry": .block("entry-presence"), "signature": .block("entry-presence-signature")]
    ) { SignedEntry.id(of: try $0.bytes("entry") + $0.bytes("signature")).bytes },
    presence(
      "entry-presence-streams", "A presence with three video streams.", sequence: 8,
      flags: [1, 4, 7, 8, 15],
      streams: [
        camera,
        stream(1, "screen", flags: 0, layers: ["1920x1080@15"]),
        stream(2, "whiteboard", flags: 3, layers: []),
      ]
    ) { $0.presenceWithStreams },
    presence(
      "entry-presence-hands-over", "A presence after a call that its author leaves to others.",
      sequence: 12, flags: [1, 7, 10], isInCall: false, streams: []
    ) { $0.presenceWithHandOver },
    entry(
      "entry-claim", "The claim that starts a call.",
      [
        "author": anna, "sequence": .hex(sequence(2)), "lamport": .number(42), "call": call,
        "term": .number(1), "started-at": started, "order": .number(0), "compared": .number(1),
      ]
    ) { $0.claim },
    entry(
      "entry-end", "The end of the call.",
      [
        "author": anna, "sequence": .hex(sequence(9)), "lamport": .number(49), "call": call,
        "term": .number(1),
      ]
    ) { $0.end },
    entry(
      "entry-joining", "A member's word that it has met another in the call.",
      [
        "author": anna, "sequence": .hex(sequence(10)), "lamport": .number(50), "call": call,
        "stage": .number(1),
      ]
    ) { $0.joining },
    entry(
      "entry-moderation", "Bert is muted in the call and removed from it.",
      [
        "author": anna, "sequence": .hex(sequence(11)), "lamport": .number(51), "call": call,
        "member": .block("id-bert"), "actions": .list([.number(0), .number(3)]),
      ]
    ) { $0.moderation },
    entry(
      "entry-neighbour-report", "A neighbour report.",
      [
        "author": anna, "sequence": .hex(sequence(3)), "lamport": .number(43), "boot-id": boot,
        "neighbours": .list([.block("id-bert")]), "suspected": .list([]),
      ]
    ) { $0.neighbourReport },
    entry(
      "entry-message", "A message to everyone, after the claim.",
      [
        "author": anna, "sequence": .hex(sequence(4)), "lamport": .number(44),
        "sent-at": started,
        "predecessors": .list([.hex([0xE0, 0xEF, 0xE3, 0x5D, 0x7E, 0x92, 0x0C, 0xCB])]),
        "text": .text("Hello"),
      ]
    ) { $0.message },
  ])

private let camera = stream(0, "camera", flags: 0, layers: ["320x180@30", "640x360@30"])

/// A stream in the inputs: number, name, flags and layers.
private func stream(_ number: UInt64, _ name: String, flags: UInt64, layers: [String]) -> Value {
  .list([
    .number(number), .text(name), .number(flags), .list(layers.map { .text($0) }),
  ])
}

private func presence(
  _ name: String, _ description: String, sequence number: UInt64, flags: [UInt64],
  isInCall: Bool = true, streams: [Value],
  _ make: @escaping @Sendable (Entries) -> SignedEntry
) -> Vector {
  entry(
    name, description,
    [
      "author": anna, "sequence": .hex(sequence(number)), "lamport": .number(40 + number),
      "boot-id": boot, "flags": .list(flags.map { .number($0) }),
      "name": .text("Anna"), "call": isInCall ? call : .null,
      "joined": isInCall ? .number(42) : .null, "streams": .list(streams),
    ], make)
}

func sequence(_ number: UInt64) -> [UInt8] { bigEndian(0xC0C1_C2C3_0000_0000 + number) }

/// An entry of the examples, without its signature.
func entry(
  _ name: String, _ description: String, _ inputs: KeyValuePairs<String, Value>,
  _ make: @escaping @Sendable (Entries) -> SignedEntry
) -> Vector {
  Vector(name, description, inputs) { _ in unsigned(make(try Entries())) }
}

@Test(
  arguments: [
    "entry-presence", "entry-presence-streams", "entry-presence-hands-over", "entry-claim",
    "entry-end", "entry-joining",
    "entry-moderation", "entry-neighbour-report", "entry-message", "entry-grant",
    "entry-redemption", "entry-epoch",
  ])
func entriesAreReadAsWritten(name: String) throws {
  let bytes = try Document.bytes(name)
  #expect(try Entry(decoding: bytes).encoded() == bytes)
}

@Test func aSignedEntryIsVerified() throws {
  let cast = try Cast()
  let written = try Document.bytes("entry-presence") + Document.bytes("entry-presence-signature")
  #expect(try SignedEntry.verified(written, in: cast.channelID).bytes == written)
}
