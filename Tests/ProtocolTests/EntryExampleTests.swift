import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// The entries of the examples, all by Anna, in the channel `lab` or in one that she created.
struct Entries {
  let cast: Cast
  let call = CallID(high: 0xE0E1_E2E3_E4E5_E6E7, low: 0xE8E9_EAEB_ECED_EEEF)

  init() throws { cast = try Cast() }

  func sign(_ number: UInt64, _ body: EntryBody, in channel: ChannelID? = nil) -> SignedEntry {
    SignedEntry.sign(
      Entry(
        author: cast.anna.id, sequence: 0xC0C1_C2C3_0000_0000 + number, lamport: 40 + number,
        body: body),
      by: cast.anna, in: channel ?? cast.channel.channelID)
  }

  var presence: SignedEntry {
    sign(
      1,
      .presence(
        Presence(
          bootID: cast.annaBoot, flags: [.audioMuted, .audio], name: "Anna",
          call: Participation(id: call, joined: 42),
          streams: [camera])))
  }

  private var camera: StreamOffer {
    StreamOffer(
      .camera,
      layers: [
        VideoLayer(size: VideoSize(width: 320, height: 180), framesPerSecond: 30),
        VideoLayer(size: VideoSize(width: 640, height: 360), framesPerSecond: 30),
      ])
  }

  /// With a screen and a muted third stream.
  func presenceOfStreams() throws -> Entry {
    let screen = VideoLayer(size: VideoSize(width: 1920, height: 1080), framesPerSecond: 15)
    let third = try #require(StreamID(2))
    let body = Presence(
      bootID: cast.annaBoot, flags: [.audioMuted, .sharing, .audio, .declinesRelaying],
      name: "Anna", call: Participation(id: call, joined: 42),
      streams: [
        camera, StreamOffer(.screen, layers: [screen]),
        StreamOffer(third, name: "whiteboard", isMuted: true, isPattern: true, layers: []),
      ])
    return Entry(
      author: cast.anna.id, sequence: 0xC0C1_C2C3_0000_0008, lamport: 48, body: .presence(body))
  }

  var claim: SignedEntry {
    sign(2, .claim(CallClaim(call: call, term: 1, startedAt: 1_735_689_600_000, order: 0)))
  }

  var neighbourReport: SignedEntry {
    sign(
      3,
      .neighbourReport(
        NeighbourReport(
          bootID: cast.annaBoot, heard: [cast.bert.id.key.prefix], suspected: [])))
  }

  var message: SignedEntry {
    sign(
      4,
      .message(
        Message(
          sentAt: 1_735_689_600_000, after: [claim.id.prefix], to: nil,
          content: Array("Hello".utf8))))
  }

  var genesis: SignedGenesis {
    SignedGenesis.sign(
      Genesis(
        owner: cast.anna.id, nonce: [UInt8](0xD0...0xDF), createdAt: 1_735_689_600,
        settings: ChannelSettings(onlyPresentersSend: true), name: "lab"),
      by: cast.anna)
  }

  var grant: SignedEntry {
    sign(
      5,
      .grant(
        Grant(
          subject: cast.bert.id, role: .presenter, expiresAt: 1_767_225_600, epoch: 0,
          isBearer: true)), in: genesis.channelID)
  }

  /// Anna's, with Bert's key in the place of a one-time key.
  var redemption: SignedEntry {
    sign(
      7,
      .redemption(
        Invites.redemption(
          of: grant.bytes, secret: cast.bert, by: cast.anna.id, in: genesis.channelID)),
      in: genesis.channelID)
  }

  var epoch: SignedEntry {
    sign(
      6,
      .epoch(
        EpochChange(
          number: 1, keyID: cast.channel.keyID, previous: .zero, removed: [cast.bert.id])),
      in: genesis.channelID)
  }
}

/// What comes before the signature, as the examples show it.
private func unsigned(_ entry: SignedEntry) -> [UInt8] {
  Array(entry.bytes.dropLast(Entry.signatureBytes))
}

@Test func entriesAreLaidOutAndSignedAsWritten() throws {
  let entries = try Entries()
  let presence = entries.presence
  try expect("entry-presence", is: unsigned(presence))
  try expect(
    "entry-presence-signature", is: Array(presence.bytes.suffix(Entry.signatureBytes)))
  try expect("entry-presence-id", is: presence.id.bytes)
  try expect("entry-presence-streams", is: try entries.presenceOfStreams().encoded())
  try expect("entry-claim", is: unsigned(entries.claim))
  try expect("entry-hearing", is: unsigned(entries.neighbourReport))
  try expect("entry-message", is: unsigned(entries.message))
  let written =
    try Document.bytes("entry-presence") + Document.bytes("entry-presence-signature")
  let channel = entries.cast.channel.channelID
  #expect(try SignedEntry.verified(written, in: channel) == presence)
}

@Test func documentsAreComparedAsWritten() throws {
  let entries = try Entries()
  var document = MusterChannel.Document(channel: entries.cast.channel.channelID)
  _ = document.insert(entries.presence)
  _ = document.insert(entries.claim)
  try expect("control-digest", is: Control.encode([.digest(document.digest)]))
  let ids = [entries.presence.id.prefix, entries.claim.id.prefix].sorted()
  let range = RangeSummary(depth: 0, prefix: 0, content: .ids(ids))
  try expect("control-ranges", is: Control.encode([.ranges([range])]))
}

@Test func rightsAreAsWritten() throws {
  let entries = try Entries()
  try expect("genesis", is: entries.genesis.bytes)
  try expect("genesis-channel-id", is: entries.genesis.channelID.key.bytes)
  try expect("entry-grant", is: unsigned(entries.grant))
  try expect("entry-redemption", is: unsigned(entries.redemption))
  try expect("entry-epoch", is: unsigned(entries.epoch))
  let verified = SignedGenesis.verified(try Document.bytes("genesis"))
  #expect(verified?.channelID == entries.genesis.channelID)
}

@Test func anInviteIsAsWritten() throws {
  let entries = try Entries()
  let invite = Invite(
    name: "lab", genesis: nil, epoch: 0,
    key: entries.cast.channel.withSecret { Array($0) }, oneTimeSeed: nil, grant: nil,
    peers: ["192.0.2.7:40000"], rendezvous: [])
  try expect("invite", is: Array(invite.url.utf8))
}
