import MusterBase
import MusterCrypto
import MusterLink
import MusterWire
import Testing

/// The engine completes a handshake with a peer that follows the document.
@Test func theEngineAnswersTheInitiationAsWritten() throws {
  let cast = try Cast()
  var configuration = LinkEngine.Configuration()
  configuration.capabilities = []
  var engine = LinkEngine(
    identity: cast.bert, bootID: cast.bertBoot, entropy: .seeded(1), seed: 1,
    configuration: configuration)
  engine.open(cast.channel)
  let initiation = try Document.bytes("initiation")
  let answers = engine.receive(initiation, from: .direct(cast.annaAddress), at: .zero)
  guard case .send(let response, .direct(cast.annaAddress))? = answers.first else {
    Issue.record("\(answers)")
    return
  }
  #expect(response.count == 101)
  let repeated = engine.receive(initiation, from: .direct(cast.annaAddress), at: .zero)
  #expect(repeated.isEmpty)

  var sides = try Handshake(Inputs(values: handshakeInputs.map { ($0.key, $0.value) }))
  _ = try sides.writeInitiation()
  #expect(Array(response[5..<9]) == bigEndian(cast.annaIndex))
  let payload = sides.initiator.read(response[9..<69])
  #expect(payload == (try Document.bytes("response-payload")))
  #expect(Array(response[69..<85]) == (try sides.mac("response-mac-key", over: response[..<69])))

  let key = sides.initiator.split().send
  let index = Array(response[1..<5])
  let first = engine.receive(
    dataDatagram([0], to: index, counter: 0, key: key), from: .direct(cast.annaAddress), at: .zero)
  let isEstablished = first.contains { output in
    if case .established(_, route: .direct(cast.annaAddress), bootID: cast.annaBoot) = output {
      true
    } else {
      false
    }
  }
  #expect(isEstablished)
  let control = try Document.bytes("control-subscribe-ping")
  let second = engine.receive(
    dataDatagram(control, to: index, counter: 1, key: key), from: .direct(cast.annaAddress),
    at: .zero)
  guard case .delivered(_, control, _, _)? = second.first, second.count == 1 else {
    Issue.record("\(second)")
    return
  }
}

@Test func aRelayedDatagramIsReadAsWritten() throws {
  let cast = try Cast()
  let bytes = try Document.bytes("relay-forward")
  let envelope = try RelayEnvelope(decoding: bytes)
  #expect(envelope.direction == .forward && envelope.member == cast.bert.id.key.prefix)
  #expect(RelayEnvelope.header(.forward, cast.bert.id.key.prefix) + envelope.datagram == bytes)
  #expect(RelayEnvelope.datagramLimit == 1161)
}
