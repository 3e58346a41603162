import MusterBase
import MusterCrypto
import MusterLink
import MusterWire
import Testing

/// The inputs of both handshake messages of the examples.
let handshakeInputs: KeyValuePairs<String, Value> = [
  "prologue": .block("prologue"), "psk": .block("noise-psk"),
  "initiator-seed": .block("seed-anna"), "responder-seed": .block("seed-bert"),
  "initiator-ephemeral": .block("ephemeral-anna"),
  "responder-ephemeral": .block("ephemeral-bert"),
  "initiator-index": .hex([0xA1, 0xA2, 0xA3, 0xA4]),
  "responder-index": .hex([0xB1, 0xB2, 0xB3, 0xB4]),
  "initiation-payload": .block("initiation-payload"),
  "response-payload": .block("response-payload"),
  "initiation-mac-key": .block("initiation-mac-key"),
  "response-mac-key": .block("response-mac-key"),
]

let handshakeVectors = Topic(
  name: "handshake", section: 6,
  description: "The handshake of a link: keys, messages, cookies and the keys of the session.",
  vectors: [
    Vector(
      "prologue", "The Noise prologue.",
      ["label": .text("muster/1"), "channel-id": .block("channel-id")]
    ) { Array(try $0.text("label").utf8) + (try $0.bytes("channel-id")) },
    Vector(
      "initiation-payload", "The payload of the initiation.",
      [
        "initiator-id": .block("id-anna"), "initiator-boot-id": .hex([1, 2, 3, 4, 5, 6, 7, 8]),
        "counter": .number(1),
        "responder-boot-id": .hex([0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]),
        "capabilities": .number(0),
      ]
    ) { inputs in
      try inputs.bytes("initiator-id") + inputs.bytes("initiator-boot-id")
        + bigEndian(inputs.number("counter")) + inputs.bytes("responder-boot-id")
        + bigEndian(UInt32(inputs.number("capabilities")))
    },
    macKey("initiation-mac-key", .initiation, label: "muster/1 mac1 initiation"),
    Vector("initiation", "The initiation, without a cookie.", handshakeInputs) { inputs in
      var sides = try Handshake(inputs)
      return try sides.writeInitiation()
    },
    Vector(
      "response-payload", "The payload of the response.",
      [
        "responder-boot-id": .hex([0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]),
        "capabilities": .number(0),
      ]
    ) { inputs in
      try inputs.bytes("responder-boot-id") + bigEndian(UInt32(inputs.number("capabilities")))
    },
    macKey("response-mac-key", .response, label: "muster/1 mac1 response"),
    Vector("response", "The response to the initiation.", handshakeInputs) { inputs in
      var sides = try Handshake(inputs)
      return try sides.writeResponse(to: sides.writeInitiation())
    },
    Vector("session-key-anna", "The initiator's sending key.", handshakeInputs) { inputs in
      var sides = try Handshake(inputs)
      return try sides.keys().initiator
    },
    Vector("session-key-bert", "The responder's sending key.", handshakeInputs) { inputs in
      var sides = try Handshake(inputs)
      return try sides.keys().responder
    },
    macKey("cookie-key", .cookie, label: "muster/1 cookie reply"),
    cookieReply,
    Vector(
      "initiation-mac2", "The second MAC of the initiation with this cookie.",
      ["initiation": .block("initiation"), "cookie": .block("cookie")]
    ) { inputs in
      let initiation = try inputs.bytes("initiation")
      return Blake2b.mac(initiation.dropLast(16), key: try inputs.secret("cookie"), count: 16)
    },
  ])

private func macKey(_ name: String, _ use: ChannelKey.HandshakeMAC, label: String) -> Vector {
  Vector(
    name, "The key for this label and responder.",
    [
      "secret": .block("name-key"), "label": .text(label), "responder": .block("x25519-bert"),
    ]
  ) { inputs in
    let channel = try #require(ChannelKey(secret: inputs.bytes("secret")))
    return revealed(channel.handshakeKey(use, responder: try inputs.bytes32("responder")))
  }
}

private let cookieReply = Vector(
  "cookie-reply", "The reply to the initiation that carries a cookie.",
  [
    "initiation": .block("initiation"), "cookie": .block("cookie"),
    "nonce": .block("cookie-nonce"), "key": .block("cookie-key"),
  ]
) { inputs in
  let initiation = try inputs.bytes("initiation")
  let sealed = AEAD.seal(
    try inputs.bytes("cookie"), nonce: try inputs.bytes("nonce"),
    associatedData: Array(initiation.dropLast(16).suffix(16)), key: try inputs.secret("key"),
    with: .xChaChaPoly)
  return [0x12] + initiation[1..<5] + (try inputs.bytes("nonce")) + (try #require(sealed))
}

let dataVectors = Topic(
  name: "data", section: 7,
  description: "Data datagrams of a session, path messages, relayed datagrams and feedback.",
  vectors: [
    data("data-keepalive", payload: .hex([0]), counter: 0),
    data("data-control", payload: .block("control-subscribe-ping"), counter: 1),
    Vector("path-challenge", "A path challenge.", ["token": .hex([UInt8](0x21...0x28))]) {
      PathMessage.challenge(try token($0)).encoded()
    },
    Vector("path-response", "The response to it.", ["token": .hex([UInt8](0x21...0x28))]) {
      PathMessage.response(try token($0)).encoded()
    },
    Vector("path-close", "The end of a link.", [:]) { _ in PathMessage.close.encoded() },
    Vector(
      "relay-forward", "A datagram, here cut short, that a relay is asked to pass on.",
      [
        "direction": .number(0), "member": .block("id-bert"),
        "datagram": .hex([0x20, 0xB1, 0xB2, 0xB3, 0xB4, 0, 0, 0, 0, 0, 0, 0, 0]),
      ]
    ) { inputs in
      let member = try inputs.bytes32("member").prefix
      return RelayEnvelope.header(.forward, member) + (try inputs.bytes("datagram"))
    },
    Vector(
      "feedback", "A report on five packets, of which the third has not arrived.",
      [
        "session": .hex([0xA1, 0xA2, 0xA3, 0xA4]), "base": .number(1_000),
        "time": .number(4_000_000),
        "ages": .list([.number(400), .number(380), .null, .number(9_000), .number(1)]),
      ]
    ) { inputs in
      let arrivals =
        try inputs.list("ages").map { age in
          if case .number(let age) = age { .init(age: UInt32(age)) } else { .missing }
        } as [CongestionFeedback.Arrival]
      return CongestionFeedback(
        session: UInt32(truncatingIfNeeded: try integer(inputs.bytes("session"))),
        base: try inputs.number("base"), time: UInt32(try inputs.number("time")),
        arrivals: arrivals
      ).encoded()
    },
  ])

private func token(_ inputs: Inputs) throws -> UInt64 { integer(try inputs.bytes("token")) }

private func integer(_ bytes: [UInt8]) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }

private func data(_ name: String, payload: Value, counter: UInt64) -> Vector {
  Vector(
    name, "A datagram of the initiator.",
    [
      "key": .block("session-key-anna"), "receiver-index": .hex([0xB1, 0xB2, 0xB3, 0xB4]),
      "counter": .number(counter), "payload": payload,
    ]
  ) { inputs in
    dataDatagram(
      try inputs.bytes("payload"), to: try inputs.bytes("receiver-index"),
      counter: try inputs.number("counter"), key: try inputs.secret("key"))
  }
}

/// A data datagram of section 7.
func dataDatagram(
  _ payload: [UInt8], to index: [UInt8], counter: UInt64, key: SecretBytes
) -> [UInt8] {
  let header = [0x20] + index + bigEndian(counter)
  var text = payload + [UInt8](repeating: 0, count: AEAD.tagBytes)
  text.withUnsafeMutableBytes { text in
    header.withUnsafeBytes { header in
      AEAD.sealInPlace(text, counter: counter, associatedData: header, key: key)
    }
  }
  return header + text
}
