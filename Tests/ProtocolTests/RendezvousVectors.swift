import MusterBase
import MusterCrypto
import MusterWire
import Testing

private let token: UInt64 = 0xA0A1_A2A3_A4A5_A6A7
private let slot: UInt64 = 0xC8C9_CACB_CCCD_CECF
private let period: UInt64 = 472_222

let rendezvousVectors = Topic(
  name: "rendezvous", section: 14,
  description: "Datagrams between a node and a rendezvous. The tag is a vector of channels.json.",
  vectors: [
    Vector("rendezvous-hello", "A hello.", ["token": .hex(bigEndian(token))]) { _ in
      RendezvousHello(token: token).encoded()
    },
    Vector(
      "rendezvous-cookie", "The cookie that answers it.",
      [
        "token": .hex(bigEndian(token)), "cookie": .hex([UInt8](0xB0...0xBF)),
        "period": .number(period), "age": .number(512), "seen": .text("192.0.2.7:40000"),
      ]
    ) { inputs in
      RendezvousCookie(
        token: token, cookie: try inputs.bytes("cookie"), period: try inputs.number("period"),
        age: UInt16(try inputs.number("age")), seen: try Cast().annaAddress
      ).encoded()
    },
    Vector(
      "rendezvous-registration", "A registration with the tag's signature.",
      [
        "slot": .hex(bigEndian(slot)), "cookie": .hex([UInt8](0xB0...0xBF)),
        "period": .number(period), "secret": .block("name-key"), "tag": .block("rendezvous-tag"),
        "flags": .number(1), "announcement": .block("announcement-datagram"),
        "label": .text("muster/1 rendezvous"),
      ]
    ) { inputs in
      let channel = try #require(ChannelKey(secret: inputs.bytes("secret")))
      let tag = channel.rendezvousTag(period: try inputs.number("period"))
      #expect(tag.id.key == (try inputs.bytes32("tag")))
      let signed = RendezvousRegistration(
        token: slot, cookie: try inputs.bytes("cookie"), period: try inputs.number("period"),
        tag: tag.id.key, slot: slot, wantsRecords: try inputs.number("flags") & 1 == 1,
        announcement: try inputs.bytes("announcement")
      ).encoded()
      return signed + tag.sign(Array(try inputs.text("label").utf8) + signed)
    },
    Vector(
      "rendezvous-records", "The record of it that another node gets.",
      [
        "slot": .hex([UInt8](0xD8...0xDF)), "seen": .text("192.0.2.7:40000"),
        "announcement": .block("announcement-datagram"),
      ]
    ) { inputs in
      let record = RendezvousRecords.Record(
        seen: try Cast().annaAddress, announcement: try inputs.bytes("announcement"))
      return RendezvousRecords(token: 0xD8D9_DADB_DCDD_DEDF, records: [record]).encoded()
    },
  ])

@Test func theDatagramsOfARendezvousAreReadAsWritten() throws {
  let hello = try Document.bytes("rendezvous-hello")
  #expect(try RendezvousHello(decoding: hello).encoded() == hello)
  let cookie = try Document.bytes("rendezvous-cookie")
  #expect(try RendezvousCookie(decoding: cookie).encoded() == cookie)
  let signed = try Document.bytes("rendezvous-registration").dropLast(64)
  #expect(try RendezvousRegistration(decoding: signed).encoded() == Array(signed))
  let records = try Document.bytes("rendezvous-records")
  #expect(try RendezvousRecords(decoding: records).encoded() == records)
}

@Test func aCookieIsShorterThanTheHello() throws {
  let far = Address(host: .v6(high: 1, low: 1, zone: 0), port: 1)
  let longest = RendezvousCookie(
    token: token, cookie: [UInt8](0xB0...0xBF), period: period, age: 512, seen: far)
  #expect(longest.encoded().count < RendezvousHello(token: token).encoded().count)
}
