import Foundation
import MusterBase
import Testing

private let topics: [Topic] = [
  keyVectors, channelVectors, announcementVectors, handshakeVectors, dataVectors, controlVectors,
  entryVectors, documentVectors, textVectors, rightsVectors, inviteVectors, mediaVectors,
  rtcpVectors, rendezvousVectors,
]

private let caseTopics: [CaseTopic] = [wellFormedCases, callCases, roleCases, retentionCases]

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

@Test(arguments: caseTopics.flatMap { topic in topic.cases.map { [topic.name, $0.name] } })
func theCodeBehavesAsInTheCase(name: [String]) throws {
  let topic = try #require(caseTopics.first { $0.name == name[0] })
  let one = try #require(topic.cases.first { $0.name == name[1] })
  #expect(try topic.compute(one.inputs).json() == one.expected.json())
}

@Test func everyCaseHasANameOfItsOwn() {
  for topic in caseTopics {
    let names = topic.cases.map(\.name)
    #expect(Set(names).count == names.count, "\(topic.name)")
  }
}

@Test func everyBlockOfTheDocumentIsAVectorOnce() throws {
  let names = topics.flatMap { $0.vectors.map(\.name) } + givenBlocks
  #expect(names.sorted() == Document.names)
  for name in Document.names { #expect(!(try Document.bytes(name)).isEmpty, "\(name)") }
}

@Test(arguments: topics.map(\.name))
func theVectorFileSaysWhatTheDocumentSays(name: String) throws {
  let topic = try #require(topics.first { $0.name == name })
  try expectFile(name, wanted: try topic.json(), "vectors", count: topic.vectors.count)
}

@Test(arguments: caseTopics.map(\.name))
func theFileHasTheCases(name: String) throws {
  let topic = try #require(caseTopics.first { $0.name == name })
  try expectFile(name, wanted: try topic.json(), "cases", count: topic.cases.count)
}

/// With `MUSTER_WRITE_VECTORS` set this rewrites the file; otherwise it compares it.
private func expectFile(_ name: String, wanted: String, _ items: String, count: Int) throws {
  let file = Document.directory.appendingPathComponent("vectors/\(name).json")
  if ProcessInfo.processInfo.environment["MUSTER_WRITE_VECTORS"] != nil {
    try wanted.write(to: file, atomically: true, encoding: .utf8)
  }
  let found = try String(contentsOf: file, encoding: .utf8)
  #expect(
    found == wanted, "docs/vectors/\(name).json: run the test with MUSTER_WRITE_VECTORS=1 once")
  let parsed = try JSONSerialization.jsonObject(with: Data(found.utf8)) as? [String: Any]
  #expect((parsed?[items] as? [Any])?.count == count)
}

@Test func noVectorFileIsLeftOver() throws {
  let files = try FileManager.default.contentsOfDirectory(
    atPath: Document.directory.appendingPathComponent("vectors").path)
  let names = topics.map(\.name) + caseTopics.map(\.name)
  let texts = topics.map { "\($0.name).md" } + ["README.md"]
  #expect(files.sorted() == (names.map { "\($0).json" } + texts).sorted())
}

@Test func theDocumentLeadsToEveryExample() throws {
  let text = try Document.parts.map(Document.text).joined()
  for topic in topics {
    let file = try Document.text(of: "vectors/\(topic.name).md")
    for name in topic.vectors.map(\.name) {
      #expect(file.contains("\n## \(name)\n\n"), "\(topic.name).md has no \(name)")
      #expect(text.contains("\n[\(name)]: ../vectors/\(topic.name).md#\(name)\n"), "\(name)")
      let links = text.matches(of: try Regex("\\[\(name)\\](?!:)")).count
      #expect(links > 0, "nothing in the document leads to \(name)")
    }
  }
}

/// The first page gives the author of a minimal peer what to read, in order.
@Test func aFirstPeerReadsFewerThan900Lines() throws {
  let page = try Document.text(of: "PROTOCOL.md")
  let path =
    try #require(page.components(separatedBy: "## A first peer\n").last)
    .components(separatedBy: "\nNext, for calls").first ?? ""
  let intro = page.components(separatedBy: "\n## 1.")[0].split(separator: "\n").count
  var lines = intro
  var parts = 0
  for link in path.matches(of: /\]\(([a-z\/]*(?:\.md)?)#([a-z0-9-]+)\)/) {
    let file = link.1.isEmpty ? page : try Document.text(of: String(link.1))
    let count = length(ofPart: String(link.2), in: file)
    #expect(count > 0, "\(link.0) leads nowhere")
    lines += count
    parts += 1
  }
  #expect(parts > 20)
  #expect(lines < 900)
}

/// The number of lines under the heading with this anchor, up to the next one.
private func length(ofPart anchor: String, in text: String) -> Int {
  var (lines, isIn) = (0, false)
  for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
    if line.hasPrefix("#") {
      let title = line.drop { $0 == "#" || $0 == " " }.lowercased()
      let id = title.filter { $0.isLetter || $0.isNumber || $0 == " " || $0 == "-" }
      isIn = id.replacingOccurrences(of: " ", with: "-") == anchor
    }
    if isIn, !line.hasPrefix("[") || !line.contains("]: ") { lines += 1 }
  }
  return lines
}
