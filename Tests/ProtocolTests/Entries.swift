import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
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
      by: cast.anna, in: channel ?? cast.channelID)
  }

  /// An entry whose body is written out field by field.
  func sign(_ number: UInt64, kind: UInt8, _ fields: [[UInt8]]) -> SignedEntry {
    sign(number, .unknown(kind: kind, Array(fields.joined())))
  }

  func presence(flags: UInt16, streams: [[UInt8]]) -> [[UInt8]] {
    [
      bigEndian(cast.annaBoot), bigEndian(flags), [4] + Array("Anna".utf8), bigEndian(call.high),
      bigEndian(call.low), bigEndian(UInt64(42)), [UInt8(streams.count)],
    ] + streams
  }

  static func stream(
    _ number: UInt8, _ name: String, flags: UInt8, _ layers: [(UInt16, UInt16, UInt8)]
  ) -> [UInt8] {
    let sizes = layers.flatMap { bigEndian($0.0) + bigEndian($0.1) + [$0.2] }
    return [number, UInt8(name.utf8.count)] + Array(name.utf8) + [flags, UInt8(layers.count)]
      + sizes
  }

  private static let camera = stream(0, "camera", flags: 0, [(320, 180, 30), (640, 360, 30)])

  var presence: SignedEntry {
    sign(1, kind: 1, presence(flags: 0x8082, streams: [Self.camera]))
  }

  var presenceWithStreams: SignedEntry {
    sign(
      8, kind: 1,
      presence(
        flags: 0x8192,
        streams: [
          Self.camera, Self.stream(1, "screen", flags: 0, [(1920, 1080, 15)]),
          Self.stream(2, "whiteboard", flags: 3, []),
        ]))
  }

  var presenceWithHandOver: SignedEntry {
    sign(
      12, kind: 1,
      [bigEndian(cast.annaBoot), bigEndian(UInt16(0x0482)), [4] + Array("Anna".utf8), [0]])
  }

  var neighbourReport: SignedEntry {
    let bert = bigEndian(cast.bert.id.key.prefix)
    return sign(3, kind: 2, [bigEndian(cast.annaBoot), [1], bert, [0]])
  }

  var claim: SignedEntry {
    sign(
      2,
      .claim(
        CallClaim(call: call, term: 1, startedAt: 1_735_689_600_000, order: 0, knowledge: .compared)
      ))
  }

  var end: SignedEntry { sign(9, .end(CallEnd(call: call, term: 1))) }

  var joining: SignedEntry { sign(10, .joining(CallJoining(call: call, stage: .met))) }

  var moderation: SignedEntry {
    sign(
      11,
      .moderation(Moderation(call: call, member: cast.bert.id, actions: [.muteAudio, .remove])))
  }

  var message: SignedEntry {
    sign(
      4,
      .message(
        Message(
          sentAt: 1_735_689_600_000, after: [claim.id.prefix], to: nil,
          content: Array("Hello".utf8))))
  }

  /// The i-th entry of the larger document, a message of one byte.
  func numbered(_ index: UInt8) -> SignedEntry {
    let message = Message(sentAt: 0, after: [], to: nil, content: [index])
    return SignedEntry.sign(
      Entry(
        author: cast.anna.id, sequence: 0xC0C1_C2C3_0000_0100 + UInt64(index),
        lamport: 100 + UInt64(index), body: .message(message)),
      by: cast.anna, in: cast.channelID)
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
          subject: cast.bert.id, role: .presenter, expiresAt: 1_767_225_600,
          form: .bearer(Grant.Terms(epoch: 0, uses: 3, roleExpiresAt: 1_798_761_600)))),
      in: genesis.channelID)
  }

  /// Signed by Anna, with Bert's key in place of a one-time key.
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

/// The bytes before the signature, as the examples show them.
func unsigned(_ entry: SignedEntry) -> [UInt8] {
  Array(entry.bytes.dropLast(Entry.signatureBytes))
}
