import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterWire
import Testing

@Test func anAnnouncementIsReadAsWritten() throws {
  let cast = try Cast()
  let datagram = try Document.bytes("announcement-datagram")
  let opened = try #require(DiscoveryDatagram.open(datagram, with: cast.channel))
  let read = try SignedAnnouncement(decoding: opened)
  #expect(read.announcement.encoded() == (try Document.bytes("announcement")))
  #expect(read.isGenuine(in: cast.channel.keyID))
}

/// A receiver skips extensions that it does not know; their bytes stay under the signature.
@Test func anExtendedAnnouncementIsReadAsWritten() throws {
  let cast = try Cast()
  let bytes =
    try Document.bytes("announcement-extended") + Document.bytes("announcement-extended-signature")
  let read = try SignedAnnouncement(decoding: bytes)
  #expect(read.announcement.author == cast.anna.id)
  #expect(read.announcement.addresses == [cast.annaAddress])
  #expect(read.isGenuine(in: cast.channel.keyID))
}

@Test func anUnknownAuthorIsChallenged() throws {
  let cast = try Cast()
  var discovery = Discovery(
    identity: cast.bert, bootID: cast.bertBoot, entropy: .seeded(1), seed: 1)
  _ = discovery.open(cast.channel, at: .zero)
  let outputs = discovery.receive(
    try Document.bytes("announcement-datagram"), from: cast.annaAddress, at: .zero)
  guard case .send(let datagram, let address)? = outputs.first, outputs.count == 1 else {
    Issue.record("\(outputs)")
    return
  }
  #expect(address == cast.annaAddress)
  #expect(datagram.count == 105)
  let opened = try #require(DiscoveryDatagram.open(datagram, with: cast.channel))
  let challenge = try Challenge(decoding: opened)
  #expect(challenge.target == cast.anna.id)
  #expect(challenge.bootID == cast.annaBoot)
  #expect(challenge.counter == 7)
}

@Test func theChallengeIsAnsweredOnceAsWritten() throws {
  let cast = try Cast()
  var discovery = Discovery(
    identity: cast.anna, bootID: cast.annaBoot, entropy: .seeded(1), seed: 1)
  _ = discovery.open(cast.channel, at: .zero)
  // Until the seventh announcement is out.
  while discovery.counters.announced < 7 {
    _ = discovery.tick(at: try #require(discovery.deadline))
  }
  let now = try #require(discovery.deadline)
  let challenge = try Document.bytes("challenge-datagram")
  let outputs = discovery.receive(challenge, from: cast.bertAddress, at: now)
  guard case .send(let datagram, let address)? = outputs.first, outputs.count == 1 else {
    Issue.record("\(outputs)")
    return
  }
  #expect(address == cast.bertAddress)
  let opened = try #require(DiscoveryDatagram.open(datagram, with: cast.channel))
  try expect("answer", is: Array(opened.dropLast(Announcement.signatureBytes)))
  try expect("answer-signature", is: Array(opened.suffix(Announcement.signatureBytes)))
  let repeated = discovery.receive(challenge, from: cast.bertAddress, at: now)
  #expect(repeated.isEmpty)
}
