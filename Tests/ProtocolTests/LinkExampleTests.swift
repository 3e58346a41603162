import MusterBase
import MusterChannel
import MusterCrypto
import MusterLink
import MusterWire
import Testing

@Test func bothHandshakeMessagesAreAsWritten() throws {
  var sides = try Handshake()
  let (initiation, response) = try sides.run()
  try expect("initiation", is: initiation)
  try expect("response", is: response)
  let keys = sides.initiator.split()
  try expect("session-key-anna", is: revealed(keys.send))
  try expect("session-key-bert", is: revealed(keys.receive))
  #expect(sides.responder.split().receive == keys.send)
}

@Test func cookieRepliesAreAsWritten() throws {
  let cast = try Cast()
  let initiation = try Document.bytes("initiation")
  let nonce = try Document.bytes("cookie-nonce")
  let mac1 = Array(initiation.dropLast(16).suffix(16))
  let sealed = AEAD.seal(
    try Document.bytes("cookie"), nonce: nonce, associatedData: mac1,
    key: try Document.secret("cookie-key"), with: .xChaChaPoly)
  let reply = [0x12] + bigEndian(cast.annaIndex) + nonce + (try #require(sealed))
  try expect("cookie-reply", is: reply)
  let mac2 = Blake2b.mac(
    initiation.dropLast(16), key: try Document.secret("cookie"), count: 16)
  try expect("initiation-mac2", is: mac2)
}

@Test func dataDatagramsAreAsWritten() throws {
  let cast = try Cast()
  let key = try Document.secret("session-key-anna")
  try expect(
    "data-keepalive", is: data([0], to: cast.bertIndex, counter: 0, key: key))
  try expect(
    "data-control",
    is: data(
      try Document.bytes("control-subscribe-ping"), to: cast.bertIndex, counter: 1, key: key))
}

/// Whoever writes what the document says is understood by the engine, and understands it.
@Test func theEngineAnswersTheInitiationAsWritten() throws {
  let cast = try Cast()
  var engine = LinkEngine(
    identity: cast.bert, bootID: cast.bertBoot, entropy: .seeded(1), seed: 1)
  engine.open(cast.channel)
  let initiation = try Document.bytes("initiation")
  let answers = engine.receive(initiation, from: cast.annaAddress, at: .zero)
  guard case .send(let response, cast.annaAddress)? = answers.first else {
    Issue.record("\(answers)")
    return
  }
  #expect(response.count == 101)
  let repeated = engine.receive(initiation, from: cast.annaAddress, at: .zero)
  #expect(repeated.isEmpty)

  var sides = try Handshake()
  _ = try sides.writeInitiation()
  #expect(Array(response[5..<9]) == bigEndian(cast.annaIndex))
  let payload = sides.initiator.read(response[9..<69])
  #expect(payload == (try Document.bytes("response-payload")))
  #expect(Array(response[69..<85]) == sides.mac(.response, over: response[..<69]))

  let index = response[1..<5].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
  let key = sides.initiator.split().send
  let link = SessionLinkID(key: cast.channel.keyID, peer: cast.anna.id)
  let first = engine.receive(
    data([0], to: index, counter: 0, key: key), from: cast.annaAddress, at: .zero)
  #expect(
    first.contains(.established(link, address: cast.annaAddress, bootID: cast.annaBoot)))
  let control = try Document.bytes("control-subscribe-ping")
  let second = engine.receive(
    data(control, to: index, counter: 1, key: key), from: cast.annaAddress, at: .zero)
  #expect(second == [.delivered(link, control)])
}

@Test func pathMessagesAreAsWritten() throws {
  try expect("path-challenge", is: PathMessage.challenge(0x2122_2324_2526_2728).encoded())
  try expect("path-response", is: PathMessage.response(0x2122_2324_2526_2728).encoded())
  try expect("path-close", is: PathMessage.close.encoded())
}

/// A handshake after section 6, from the inputs of the document.
private struct Handshake {
  let cast: Cast
  var initiator: HandshakeState
  var responder: HandshakeState

  init() throws {
    cast = try Cast()
    let prologue = Array("muster/1".utf8) + cast.channel.keyID.key.bytes
    try expect("prologue", is: prologue)
    initiator = HandshakeState(
      .ikPSK2, .initiator, prologue: prologue, staticKeys: cast.anna.linkKeys,
      remoteStatic: cast.bert.x25519PublicKey, psk: cast.channel.noisePSK)
    responder = HandshakeState(
      .ikPSK2, .responder, prologue: prologue, staticKeys: cast.bert.linkKeys,
      psk: cast.channel.noisePSK)
  }

  mutating func run() throws -> (initiation: [UInt8], response: [UInt8]) {
    let initiation = try writeInitiation()
    let received = responder.read(initiation[5..<161])
    #expect(received == (try Document.bytes("initiation-payload")))
    let payload = bigEndian(cast.bertBoot) + bigEndian(UInt32(0))
    try expect("response-payload", is: payload)
    let pair = X25519.KeyPair(secret: try Document.secret("ephemeral-bert"))
    let written = responder.write(payload, ephemeral: pair)
    let noise = try #require(written)
    let read = initiator.read(noise[...])
    #expect(read == payload)
    let start = [0x11] + bigEndian(cast.bertIndex) + bigEndian(cast.annaIndex) + noise
    return (initiation, finished(start, .response))
  }

  mutating func writeInitiation() throws -> [UInt8] {
    let payload =
      cast.anna.id.key.bytes + bigEndian(cast.annaBoot) + bigEndian(UInt64(1))
      + bigEndian(cast.bertBoot) + bigEndian(UInt32(0))
    try expect("initiation-payload", is: payload)
    let pair = X25519.KeyPair(secret: try Document.secret("ephemeral-anna"))
    let written = initiator.write(payload, ephemeral: pair)
    let noise = try #require(written)
    return finished([0x10] + bigEndian(cast.annaIndex) + noise, .initiation)
  }

  func mac(_ use: ChannelKey.HandshakeMAC, over message: ArraySlice<UInt8>) -> [UInt8] {
    let key = cast.channel.handshakeKey(use, responder: cast.bert.x25519PublicKey)
    return Blake2b.mac(message, key: key, count: 16)
  }

  private func finished(_ start: [UInt8], _ use: ChannelKey.HandshakeMAC) -> [UInt8] {
    start + mac(use, over: start[...]) + [UInt8](repeating: 0, count: 16)
  }
}

private func data(_ payload: [UInt8], to index: UInt32, counter: UInt64, key: SecretBytes)
  -> [UInt8]
{
  let header = [0x20] + bigEndian(index) + bigEndian(counter)
  var text = payload + [UInt8](repeating: 0, count: AEAD.tagBytes)
  text.withUnsafeMutableBytes { text in
    header.withUnsafeBytes { header in
      AEAD.sealInPlace(text, counter: counter, associatedData: header, key: key)
    }
  }
  return header + text
}

private func bigEndian(_ value: some FixedWidthInteger) -> [UInt8] {
  withUnsafeBytes(of: value.bigEndian) { [UInt8]($0) }
}

@Test func relayedDatagramsAreLaidOutAsWritten() throws {
  let cast = try Cast()
  let bytes = try Document.bytes("relay-forward")
  let envelope = try RelayEnvelope(decoding: bytes)
  #expect(envelope.direction == .forward && envelope.member == cast.bert.id.key.prefix)
  #expect(RelayEnvelope.header(.forward, cast.bert.id.key.prefix) + envelope.datagram == bytes)
  #expect(RelayEnvelope.datagramLimit == 1161)
}
