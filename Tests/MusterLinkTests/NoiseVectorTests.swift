import Foundation
import MusterBase
import MusterCrypto
import MusterLink
import Testing

/// The published vectors (cacophony), through the handshake that the node runs.
@Test func handshakesAgreeWithThePublishedVectors() throws {
  let vectors = try NoiseVectors.load()
  #expect(vectors.map(\.protocolName).count == 2)
  for vector in vectors { try run(vector) }
}

@Test func anAlteredHandshakeMessageIsRefused() throws {
  for vector in try NoiseVectors.load() {
    let message = try bytes(vector.messages[0].ciphertext)
    for index in message.indices {
      var altered = message
      altered[index] ^= 1
      var responder = try vector.responder()
      #expect(responder.read(altered[...]) == nil, "\(vector.protocolName) byte \(index)")
    }
    for length in message.indices {
      var responder = try vector.responder()
      #expect(responder.read(message[..<length]) == nil)
    }
  }
}

@Test func messagesOutOfTurnAreRefused() throws {
  let vector = try #require(try NoiseVectors.load().first)
  var responder = try vector.responder()
  let pair = X25519.KeyPair(secret: try secret(vector.respEphemeral))
  #expect(responder.write([], ephemeral: pair) == nil)
  var initiator = try vector.initiator()
  #expect(initiator.read(try bytes(vector.messages[0].ciphertext)[...]) == nil)
}

private func run(_ vector: NoiseVectors.Vector) throws {
  var sides = [try vector.initiator(), try vector.responder()]
  let ephemerals = [vector.initEphemeral, vector.respEphemeral]
  for (number, message) in vector.messages.prefix(2).enumerated() {
    let pair = X25519.KeyPair(secret: try secret(ephemerals[number]))
    let payload = try bytes(message.payload)
    let written = sides[number].write(payload, ephemeral: pair)
    #expect(written.map { Hex.encode($0) } == message.ciphertext)
    #expect(sides[1 - number].read(try bytes(message.ciphertext)[...]) == payload)
  }
  #expect(sides.allSatisfy { $0.isComplete })
  #expect(sides.allSatisfy { Hex.encode($0.hash) == vector.handshakeHash })
  #expect(sides[1].remoteStatic == X25519.KeyPair(secret: try secret(vector.initStatic)).publicKey)
  let keys = sides.map { $0.split() }
  for (number, message) in vector.messages.dropFirst(2).enumerated() {
    let sender = number % 2
    let counter = UInt64(number / 2)
    let key = keys[sender].send
    #expect(key == keys[1 - sender].receive)
    var buffer = try bytes(message.payload) + [UInt8](repeating: 0, count: AEAD.tagBytes)
    buffer.withUnsafeMutableBytes {
      AEAD.sealInPlace(
        $0, counter: counter, associatedData: UnsafeRawBufferPointer(start: nil, count: 0),
        key: key)
    }
    #expect(Hex.encode(buffer) == message.ciphertext)
  }
}

private enum NoiseVectors {
  struct File: Decodable { var vectors: [Vector] }

  struct Vector: Decodable {
    var protocolName: String
    var initPrologue, initStatic, initEphemeral, initRemoteStatic: String
    var respPrologue, respStatic, respEphemeral, handshakeHash: String
    var initPsks, respPsks: [String]?
    var messages: [Message]

    struct Message: Decodable { var payload, ciphertext: String }

    var pattern: HandshakeState.Pattern { protocolName.contains("psk2") ? .ikPSK2 : .ik }

    func initiator() throws -> HandshakeState {
      HandshakeState(
        pattern, .initiator, prologue: try bytes(initPrologue),
        staticKeys: X25519.KeyPair(secret: try secret(initStatic)),
        remoteStatic: Bytes32(try bytes(initRemoteStatic)),
        psk: try initPsks?.first.map { try secret($0) })
    }

    func responder() throws -> HandshakeState {
      HandshakeState(
        pattern, .responder, prologue: try bytes(respPrologue),
        staticKeys: X25519.KeyPair(secret: try secret(respStatic)),
        psk: try respPsks?.first.map { try secret($0) })
    }
  }

  static func load() throws -> [Vector] {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent()
      .appendingPathComponent("Vectors/noise/ik_chachapoly_blake2b.json")
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try decoder.decode(File.self, from: Data(contentsOf: file)).vectors
  }
}

private func secret(_ hex: String) throws -> SecretBytes { SecretBytes(try bytes(hex)) }

private func bytes(_ hex: String) throws -> [UInt8] { try #require(Hex.decode(hex)) }
