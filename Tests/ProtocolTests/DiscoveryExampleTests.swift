import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterWire
import Testing

@Test func announcesAreLaidOutSignedAndSealedAsWritten() throws {
  let cast = try Cast()
  let addresses = try ["192.0.2.7:40000", "[2001:db8::7]:40000"].map { try #require(Address($0)) }
  let announcement = Announcement(
    author: cast.anna.id, bootID: cast.annaBoot, counter: 7, echo: nil, addresses: addresses)
  let signed = SignedAnnouncement(announcement, by: cast.anna, in: cast.channel.keyID)
  try expect("announce", is: announcement.encoded())
  try expect("announce-signature", is: signed.signature)
  try expect(
    "announce-datagram",
    is: try sealed(announcement.encoded() + signed.signature, kind: 1, nonce: "announce-nonce"))

  let datagram = try Document.bytes("announce-datagram")
  let opened = try #require(DiscoveryDatagram.open(datagram, with: cast.channel))
  let read = try SignedAnnouncement(decoding: opened)
  #expect(read.announcement == announcement)
  #expect(read.isGenuine(in: cast.channel.keyID))
}

@Test func challengesAreLaidOutAndSealedAsWritten() throws {
  let cast = try Cast()
  let challenge = Challenge(
    target: cast.anna.id, bootID: cast.annaBoot, counter: 7, echo: cast.echo)
  try expect("challenge", is: challenge.encoded())
  try expect(
    "challenge-datagram",
    is: try sealed(challenge.encoded(), kind: 2, nonce: "challenge-nonce"))
}

@Test func aStrangersAnnounceIsChallenged() throws {
  let cast = try Cast()
  var discovery = Discovery(
    identity: cast.bert, bootID: cast.bertBoot, entropy: .seeded(1), seed: 1)
  _ = discovery.open(cast.channel, at: .zero)
  let outputs = discovery.receive(
    try Document.bytes("announce-datagram"), from: cast.annaAddress, at: .zero)
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
  // Until the seventh announce is out.
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

private func sealed(_ plaintext: [UInt8], kind: UInt8, nonce: String) throws -> [UInt8] {
  let nonce = try Document.bytes(nonce)
  let sealed = AEAD.seal(
    plaintext, nonce: nonce, associatedData: [kind], key: try announcementKey(), with: .xChaChaPoly)
  return [kind] + nonce + (try #require(sealed))
}
