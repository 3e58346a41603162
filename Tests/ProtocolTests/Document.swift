import Foundation
import MusterBase
import MusterCrypto
import Testing

/// The worked examples in `docs/vectors`: each block of hex by the name behind its fence.
enum Document {
  /// `docs`.
  static let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("docs")

  private static let examples: [String: [UInt8]] = read()

  static var names: [String] { examples.keys.sorted() }

  static func bytes(_ name: String) throws -> [UInt8] {
    try #require(examples[name], "docs/vectors has no example \(name)")
  }

  static func secret(_ name: String) throws -> SecretBytes { SecretBytes(try bytes(name)) }

  static func bytes32(_ name: String) throws -> Bytes32 {
    try #require(Bytes32(try bytes(name)), "the example \(name) does not have 32 bytes")
  }

  /// The parts of the protocol document.
  static let parts = [
    "PROTOCOL.md", "protocol/links.md", "protocol/channel.md", "protocol/media.md",
    "protocol/finding.md",
  ]

  /// The text of a file in `docs`.
  static func text(of path: String) throws -> String {
    try String(contentsOf: directory.appendingPathComponent(path), encoding: .utf8)
  }

  private static func read() -> [String: [UInt8]] {
    let folder = directory.appendingPathComponent("vectors").path
    let files = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    let texts = files.filter { $0.hasSuffix(".md") }.compactMap { try? text(of: "vectors/\($0)") }
    let all = texts.joined(separator: "\n")
    var result: [String: [UInt8]] = [:]
    var open: (name: String, digits: String)?
    for line in all.split(separator: "\n", omittingEmptySubsequences: false) {
      if let block = open {
        if line == "```" {
          // A second block of one name invalidates both.
          let isNew = result[block.name] == nil
          result[block.name] = isNew ? Hex.decode(block.digits) ?? [] : []
          open = nil
        } else {
          // Comments begin with a number sign.
          let digits = line.prefix { $0 != "#" }.filter { !$0.isWhitespace }
          open = (block.name, block.digits + digits)
        }
      } else if line.hasPrefix("```hex ") {
        open = (String(line.dropFirst(7)), "")
      }
    }
    return result
  }
}

/// The two nodes of the examples, their channel and their addresses.
struct Cast {
  let anna: Identity
  let bert: Identity
  let channel: ChannelKey
  let channelID: ChannelID
  let annaBoot: UInt64 = 0x0102_0304_0506_0708
  let bertBoot: UInt64 = 0x1112_1314_1516_1718
  let annaIndex: UInt32 = 0xA1A2_A3A4
  let bertIndex: UInt32 = 0xB1B2_B3B4
  let annaAddress = Address(host: .v4(0xC000_0207), port: 40000)
  let bertAddress = Address(host: .v4(0xC000_0208), port: 40000)

  init() throws {
    anna = try #require(Identity(seed: try Document.bytes("seed-anna")))
    bert = try #require(Identity(seed: try Document.bytes("seed-bert")))
    channel = try #require(ChannelKey(secret: try Document.bytes("name-key")))
    channelID = ChannelID(try Document.bytes32("channel-id"))
  }
}

/// Compares the block of the document with this name to the code's bytes.
func expect(_ name: String, is actual: [UInt8]) throws {
  let wanted = try Document.bytes(name)
  #expect(actual == wanted, "\(name): the code computes \(Hex.encode(actual))")
}

/// The bytes of a secret, which only a test may look at.
func revealed(_ secret: SecretBytes) -> [UInt8] { secret.withUnsafeBytes { [UInt8]($0) } }

/// The integer's bytes, the most significant first.
func bigEndian(_ value: some FixedWidthInteger) -> [UInt8] {
  withUnsafeBytes(of: value.bigEndian) { [UInt8]($0) }
}

/// A datagram of `kind` whose content XChaCha20-Poly1305 seals under `key`.
func sealed(
  _ plaintext: [UInt8], kind: UInt8, nonce: [UInt8], key: SecretBytes
) throws -> [UInt8] {
  let sealed = AEAD.seal(
    plaintext, nonce: nonce, associatedData: [kind], key: key, with: .xChaChaPoly)
  return [kind] + nonce + (try #require(sealed))
}
