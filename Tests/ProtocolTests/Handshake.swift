import MusterBase
import MusterCrypto
import MusterLink
import Testing

/// Both sides of the handshake of section 6, from the inputs of a vector.
struct Handshake {
  let inputs: Inputs
  let cast: Cast
  var initiator: HandshakeState
  var responder: HandshakeState

  init(_ inputs: Inputs) throws {
    self.inputs = inputs
    cast = try Cast()
    let prologue = try inputs.bytes("prologue")
    let psk = try inputs.secret("psk")
    let (anna, bert) = (
      try inputs.identity("initiator-seed"), try inputs.identity("responder-seed")
    )
    initiator = HandshakeState(
      .ikPSK2, .initiator, prologue: prologue, staticKeys: anna.linkKeys,
      remoteStatic: bert.x25519PublicKey, psk: psk)
    responder = HandshakeState(
      .ikPSK2, .responder, prologue: prologue, staticKeys: bert.linkKeys, psk: psk)
  }

  mutating func writeInitiation() throws -> [UInt8] {
    let pair = X25519.KeyPair(secret: try inputs.secret("initiator-ephemeral"))
    let written = initiator.write(try inputs.bytes("initiation-payload"), ephemeral: pair)
    let start = [0x10] + (try inputs.bytes("initiator-index")) + (try #require(written))
    return start + (try mac("initiation-mac-key", over: start[...])) + Self.noCookie
  }

  mutating func writeResponse(to initiation: [UInt8]) throws -> [UInt8] {
    let payload = try inputs.bytes("response-payload")
    let received = responder.read(initiation[5..<161])
    #expect(received == (try inputs.bytes("initiation-payload")))
    let pair = X25519.KeyPair(secret: try inputs.secret("responder-ephemeral"))
    let written = responder.write(payload, ephemeral: pair)
    let noise = try #require(written)
    let read = initiator.read(noise[...])
    #expect(read == payload)
    let indices = try inputs.bytes("responder-index") + inputs.bytes("initiator-index")
    let start = [0x11] + indices + noise
    return start + (try mac("response-mac-key", over: start[...])) + Self.noCookie
  }

  /// The first key seals the initiator's datagrams, the second the responder's.
  mutating func keys() throws -> (initiator: [UInt8], responder: [UInt8]) {
    _ = try writeResponse(to: writeInitiation())
    let keys = initiator.split()
    #expect(responder.split().receive == keys.send)
    return (revealed(keys.send), revealed(keys.receive))
  }

  func mac(_ key: String, over message: ArraySlice<UInt8>) throws -> [UInt8] {
    Blake2b.mac(message, key: try inputs.secret(key), count: 16)
  }

  private static let noCookie = [UInt8](repeating: 0, count: 16)
}
