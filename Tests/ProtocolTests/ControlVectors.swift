import MusterBase
import MusterWire
import Testing

let controlVectors = Topic(
  name: "control", section: 8,
  description: "Control payloads. Each message is its type, its length and its value.",
  vectors: [
    Vector(
      "control-seen", "The address at which the sender sees the receiver.",
      ["address": .text("192.0.2.7:40000")]
    ) { inputs in
      let address = try #require(Address(try inputs.text("address")))
      return Control.encode([.seen(address)])
    },
    Vector(
      "control-subscribe-ping", "A subscription to a video stream, and a ping.",
      [
        "stream": .number(0), "width": .number(640), "height": .number(360),
        "token": .hex([UInt8](0x31...0x38)),
      ]
    ) { inputs in
      let (width, height) = (try inputs.number("width"), try inputs.number("height"))
      let value =
        [UInt8(try inputs.number("stream"))] + bigEndian(UInt16(width)) + bigEndian(UInt16(height))
      return payload([(3, value), (4, try inputs.bytes("token"))])
    },
    Vector(
      "control-subscribe-rate",
      "A subscription up to a frame rate, and none where other video ranks higher.",
      [
        "stream": .number(0), "width": .number(320), "height": .number(180),
        "frames-per-second": .number(15), "reason": .number(2), "stream-off": .number(1),
        "rate-off": .number(255), "reason-off": .number(9),
      ]
    ) { inputs in
      let request = VideoRequest(
        width: UInt16(try inputs.number("width")), height: UInt16(try inputs.number("height")),
        framesPerSecond: UInt8(try inputs.number("frames-per-second")))
      return Control.encode([
        .subscribe(Subscription(.camera, request)), .subscribe(Subscription(.screen, .outranked)),
      ])
    },
    Vector(
      "control-subscribe-cpu", "A subscription of a node that is short of CPU.",
      [
        "stream": .number(0), "width": .number(320), "height": .number(180),
        "frames-per-second": .number(15), "reason": .number(10),
      ]
    ) { inputs in
      let request = VideoRequest(
        width: UInt16(try inputs.number("width")), height: UInt16(try inputs.number("height")),
        framesPerSecond: UInt8(try inputs.number("frames-per-second")), why: .cpu)
      return Control.encode([.subscribe(Subscription(.camera, request))])
    },
    Vector(
      "control-sent-layers", "The layer sent of one video stream, and none of another.",
      [
        "stream": .number(0), "width": .number(640), "height": .number(360),
        "frames-per-second": .number(15), "reason": .number(8), "stream-off": .number(1),
        "reason-off": .number(2),
      ]
    ) { inputs in
      let size = VideoSize(
        width: Int(try inputs.number("width")), height: Int(try inputs.number("height")))
      let layer = VideoLayer(
        size: size, framesPerSecond: Int(try inputs.number("frames-per-second")))
      return Control.encode([
        .sentLayer(SentLayer(.camera, layer, why: .bandwidth)),
        .sentLayer(SentLayer(.screen, nil, why: .requested)),
      ])
    },
    Vector(
      "control-received", "The acknowledgement of two entries.",
      ["ids": .list([.hex([UInt8](0x01...0x08)), .hex([UInt8](0x11...0x18))])]
    ) { _ in
      Control.encode([.entriesReceived([0x0102_0304_0506_0708, 0x1112_1314_1516_1718])])
    },
    Vector(
      "control-mixed", "A payload of several messages, the last of an unknown optional type.",
      [
        "pong-token": .hex([UInt8](0x31...0x38)), "wanted": .list([.hex(claimPrefix)]),
        "probe-target": .block("id-bert"), "probe-token": .number(7),
        "probe-answered": .number(1), "refusal": .number(4),
        "candidates": .list([.text("192.0.2.7:40000"), .text("[2001:db8::7]:40000")]),
        "unknown-type": .number(112), "unknown-value": .hex([0xCA, 0xFE]),
      ]
    ) { inputs in
      let unknown = try inputs.bytes("unknown-value")
      return Control.encode(try mixed(inputs)) + [UInt8(try inputs.number("unknown-type"))]
        + bigEndian(UInt16(unknown.count)) + unknown
    },
  ])

/// The first bytes of the id of the document's claim.
private let claimPrefix: [UInt8] = [0xE0, 0xEF, 0xE3, 0x5D, 0x7E, 0x92, 0x0C, 0xCB]

private func mixed(_ inputs: Inputs) throws -> [Control] {
  let target = NodeID(try inputs.bytes32("probe-target"))
  let token = try inputs.number("probe-token")
  return [
    .pong(0x3132_3334_3536_3738), .want([0xE0EF_E35D_7E92_0CCB]), .probe(target, token: token),
    .probed(target, token: token, answered: true), .refused(.noGrant),
    .candidates(try inputs.addresses("candidates")),
  ]
}

private func payload(_ messages: [(type: UInt8, value: [UInt8])]) -> [UInt8] {
  messages.reduce([0x01]) { $0 + [$1.type] + bigEndian(UInt16($1.value.count)) + $1.value }
}

@Test(arguments: [
  "control-seen", "control-subscribe-ping", "control-sent-layers", "control-received",
])
func controlPayloadsAreReadAsWritten(name: String) throws {
  let bytes = try Document.bytes(name)
  #expect(Control.encode(try Control.decode(bytes)) == bytes)
}

@Test func anUnknownOptionalMessageIsSkipped() throws {
  let vector = try #require(controlVectors.vectors.first { $0.name == "control-mixed" })
  let read = try Control.decode(try Document.bytes("control-mixed"))
  #expect(read == (try mixed(vector.inputs)))
}
