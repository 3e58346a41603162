import Foundation
import MusterBase
import Testing

private let topics: [Topic] = [
  keyVectors, channelVectors, announcementVectors, handshakeVectors, dataVectors, controlVectors,
  entryVectors, documentVectors, textVectors, rightsVectors, inviteVectors, mediaVectors,
  rtcpVectors, rendezvousVectors,
]

/// Blocks of the document that are given rather than computed: seeds, nonces and the like.
private let givenBlocks = [
  "seed-anna", "seed-bert", "announcement-nonce", "challenge-nonce", "ephemeral-anna",
  "ephemeral-bert", "cookie", "cookie-nonce", "direct-nonce",
]

@Test(arguments: topics.flatMap { topic in topic.vectors.map { $0.name } })
func theCodeComputesTheVector(name: String) throws {
  let vector = try #require(topics.flatMap(\.vectors).first { $0.name == name })
  try expect(name, is: try vector.compute(vector.inputs))
}

@Test func everyBlockOfTheDocumentIsAVectorOnce() throws {
  let names = topics.flatMap { $0.vectors.map(\.name) } + givenBlocks
  #expect(names.sorted() == Document.names)
  for name in Document.names { #expect(!(try Document.bytes(name)).isEmpty, "\(name)") }
}

/// With `MUSTER_WRITE_VECTORS` set this rewrites the files; otherwise it compares them.
@Test(arguments: topics.map(\.name))
func theVectorFileSaysWhatTheDocumentSays(name: String) throws {
  let topic = try #require(topics.first { $0.name == name })
  let file = Document.directory.appendingPathComponent("vectors/\(name).json")
  let wanted = try topic.json()
  if ProcessInfo.processInfo.environment["MUSTER_WRITE_VECTORS"] != nil {
    try wanted.write(to: file, atomically: true, encoding: .utf8)
  }
  let found = try String(contentsOf: file, encoding: .utf8)
  #expect(
    found == wanted, "docs/vectors/\(name).json: run the test with MUSTER_WRITE_VECTORS=1 once")
  let parsed = try JSONSerialization.jsonObject(with: Data(found.utf8)) as? [String: Any]
  #expect((parsed?["vectors"] as? [Any])?.count == topic.vectors.count)
}

@Test func noVectorFileIsLeftOver() throws {
  let files = try FileManager.default.contentsOfDirectory(
    atPath: Document.directory.appendingPathComponent("vectors").path)
  #expect(files.sorted() == (topics.map { "\($0.name).json" } + ["README.md"]).sorted())
}
