import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

private let token: UInt64 = 0xA0A1_A2A3_A4A5_A6A7
private let period: UInt64 = 472_222

@Test func tagsFollowFromTheChannelsSecret() throws {
  let tag = try Cast().channel.rendezvousTag(period: period)
  try expect("rendezvous-tag", is: tag.id.key.bytes)
}

@Test func tagsInADHTFollowFromTheChannelsSecret() throws {
  try expect("dht-tag", is: Cast().channel.dhtTag(day: 19_675))
}

@Test func theWordsWithARendezvousAreLaidOutAsWritten() throws {
  let cast = try Cast()
  let hello = RendezvousHello(token: token)
  try expect("rendezvous-hello", is: hello.encoded())
  let cookie = RendezvousCookie(
    token: token, cookie: [UInt8](0xB0...0xBF), period: period, age: 512, seen: cast.annaAddress)
  try expect("rendezvous-cookie", is: cookie.encoded())
  #expect(try RendezvousCookie(decoding: Document.bytes("rendezvous-cookie")) == cookie)
  // Never larger than the question.
  let far = Address(host: .v6(high: 1, low: 1, zone: 0), port: 1)
  let longest = RendezvousCookie(
    token: token, cookie: cookie.cookie, period: period, age: 512, seen: far)
  #expect(longest.encoded().count < hello.encoded().count)
}
