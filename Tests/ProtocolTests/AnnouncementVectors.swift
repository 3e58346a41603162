import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterWire
import Testing

private let announced: KeyValuePairs<String, Value> = [
  "author": .block("id-anna"), "boot-id": .hex([1, 2, 3, 4, 5, 6, 7, 8]), "counter": .number(7),
  "addresses": .list([.text("192.0.2.7:40000"), .text("[2001:db8::7]:40000")]),
]
private let answered: KeyValuePairs<String, Value> = [
  "author": .block("id-anna"), "boot-id": .hex([1, 2, 3, 4, 5, 6, 7, 8]), "counter": .number(8),
  "echo": .hex([UInt8](0x80...0x8F)), "addresses": .list([]),
]
private let extended: KeyValuePairs<String, Value> = [
  "author": .block("id-anna"), "boot-id": .hex([1, 2, 3, 4, 5, 6, 7, 8]), "counter": .number(9),
  "addresses": .list([.text("192.0.2.7:40000")]), "extension-type": .number(240),
  "extension-value": .hex([1, 2, 3]),
]

let announcementVectors = Topic(
  name: "announcements", section: 5,
  description: "Announcements, their answers with an echo, and challenges.",
  vectors: [
    Vector("announcement", "The plaintext of an announcement.", announced) {
      try announcement($0)
    },
    signature("announcement"),
    datagram("announcement-datagram", of: "announcement", signature: "announcement-signature"),
    Vector(
      "announcement-extended", "An announcement with an extension that no receiver knows.", extended
    ) { inputs in
      let value = try inputs.bytes("extension-value")
      return try announcement(inputs) + [UInt8(try inputs.number("extension-type"))]
        + bigEndian(UInt16(value.count)) + value
    },
    signature("announcement-extended"),
    Vector(
      "challenge", "The plaintext of a challenge.",
      [
        "target": .block("id-anna"), "boot-id": .hex([1, 2, 3, 4, 5, 6, 7, 8]),
        "counter": .number(7), "echo": .hex([UInt8](0x80...0x8F)),
      ]
    ) { inputs in
      Challenge(
        target: NodeID(try inputs.bytes32("target")), bootID: try Cast().annaBoot,
        counter: try inputs.number("counter"), echo: try inputs.bytes("echo")
      ).encoded()
    },
    Vector(
      "challenge-datagram", "The sealed challenge, with its kind and nonce.",
      [
        "plaintext": .block("challenge"), "nonce": .block("challenge-nonce"),
        "key": .block("announcement-key"),
      ]
    ) { inputs in
      try sealed(
        inputs.bytes("plaintext"), kind: 2, nonce: inputs.bytes("nonce"),
        key: inputs.secret("key"))
    },
    Vector("answer", "The plaintext of the answer to the challenge.", answered) {
      try announcement($0)
    },
    signature("answer"),
  ])

private func announcement(_ inputs: Inputs) throws -> [UInt8] {
  let echo = inputs.values.contains { $0.name == "echo" } ? try inputs.bytes("echo") : nil
  return Announcement(
    author: NodeID(try inputs.bytes32("author")), bootID: try Cast().annaBoot,
    counter: try inputs.number("counter"), echo: echo, addresses: try inputs.addresses("addresses")
  ).encoded()
}

private func signature(_ name: String) -> Vector {
  Vector(
    "\(name)-signature", "The author's signature of the plaintext.",
    [
      "seed": .block("seed-anna"), "label": .text("muster/1 announce"),
      "channel-id": .block("channel-id"), "plaintext": .block(name),
    ]
  ) { inputs in
    try inputs.identity("seed").sign(
      Array(inputs.text("label").utf8) + inputs.bytes("channel-id") + inputs.bytes("plaintext"))
  }
}

private func datagram(_ name: String, of plaintext: String, signature: String) -> Vector {
  Vector(
    name, "The sealed announcement, with its kind and nonce.",
    [
      "plaintext": .block(plaintext), "signature": .block(signature),
      "nonce": .block("announcement-nonce"), "key": .block("announcement-key"),
    ]
  ) { inputs in
    try sealed(
      inputs.bytes("plaintext") + inputs.bytes("signature"), kind: 1,
      nonce: inputs.bytes("nonce"), key: inputs.secret("key"))
  }
}
