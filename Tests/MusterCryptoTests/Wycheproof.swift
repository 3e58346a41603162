import Foundation
import MusterBase
import MusterCrypto

/// A file of Project Wycheproof: groups of cases, some of which must be refused.
struct Wycheproof<Group: Decodable>: Decodable {
  var testGroups: [Group]

  init(_ name: String) throws {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().appendingPathComponent("Vectors/wycheproof")
    let data = try Data(contentsOf: folder.appendingPathComponent(name))
    self = try JSONDecoder().decode(Self.self, from: data)
  }
}

struct AEADGroup: Decodable {
  var tests: [Case]

  struct Case: Decodable {
    var tcId: Int
    var key, iv, aad, msg, ct, tag, result: String
  }
}

struct X25519Group: Decodable {
  var tests: [Case]

  struct Case: Decodable {
    var tcId: Int
    var `public`, `private`, shared, result: String
  }
}

struct Ed25519Group: Decodable {
  var publicKey: Key
  var tests: [Case]

  struct Key: Decodable { var pk: String }

  struct Case: Decodable {
    var tcId: Int
    var msg, sig, result: String
  }
}

func bytes(_ hex: String) throws -> [UInt8] {
  guard let bytes = Hex.decode(hex) else { throw BadVector(text: hex) }
  return bytes
}

func bytes32(_ hex: String) throws -> Bytes32 {
  guard let value = Bytes32(try bytes(hex)) else { throw BadVector(text: hex) }
  return value
}

struct BadVector: Error { var text: String }
