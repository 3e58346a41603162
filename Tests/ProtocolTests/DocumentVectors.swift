import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterWire
import Testing

private let two: KeyValuePairs<String, Value> = [
  "items": .list([.block("entry-presence-id"), .hex(claimID)])
]
private let many: KeyValuePairs<String, Value> = [
  "count": .number(48), "seed": .block("seed-anna"), "channel-id": .block("channel-id"),
  "first-sequence": .hex([0xC0, 0xC1, 0xC2, 0xC3, 0, 0, 1, 0]), "first-lamport": .number(100),
]

/// BLAKE2b-256 of the document's claim with its signature.
private let claimID: [UInt8] = (try? Entries().claim.id.bytes) ?? []

let documentVectors = Topic(
  name: "documents", section: 9,
  description: "Digests and ranges of documents, and the id of a quarantine.",
  vectors: [
    Vector("control-digest", "The digest of a document of two items.", two) { inputs in
      #expect(inputs.values.count == 1)
      let entries = try Entries()
      return Control.encode([.digest(try document([entries.presence, entries.claim]).digest)])
    },
    Vector("control-ranges", "All ranges of the document of two items: a list.", two) { _ in
      let entries = try Entries()
      return try rootRanges([entries.presence, entries.claim])
    },
    Vector(
      "control-digest-48", "The digest of a document of 48 messages, each of one byte.", many
    ) { inputs in
      let entries = try numbered(inputs.number("count"))
      return Control.encode([.digest(try document(entries).digest)])
    },
    Vector(
      "control-ranges-48", "The children of the range of all items of that document.", many
    ) { try rootRanges(numbered($0.number("count"))) },
    Vector(
      "equivocation-id", "The id of the item that quarantines an author.",
      ["label": .text("muster/1 fence"), "author": .block("id-anna")]
    ) { inputs in
      Blake2b.hash(Array(try inputs.text("label").utf8) + (try inputs.bytes("author")))
    },
  ])

private func numbered(_ count: UInt64) throws -> [SignedEntry] {
  let entries = try Entries()
  return (0..<UInt8(count)).map(entries.numbered)
}

private func document(_ entries: [SignedEntry]) throws -> MusterChannel.Document {
  var document = MusterChannel.Document(channel: try Cast().channelID)
  for entry in entries { _ = document.insert(entry) }
  return document
}

/// The answer of a node with these entries to a different digest.
private func rootRanges(_ entries: [SignedEntry]) throws -> [UInt8] {
  let cast = try Cast()
  var gossip = Gossip(channel: cast.channelID, own: cast.anna.id, exempt: nil, seed: 1)
  gossip.restore(entries)
  _ = gossip.linkUp(cast.bert.id, at: .zero)
  let empty = DocumentDigest(count: 0, sum: .zero)
  let outputs = gossip.receive(.digest(empty), from: cast.bert.id, at: .zero)
  for case .send(.ranges(let ranges), _) in outputs { return Control.encode([.ranges(ranges)]) }
  return []
}

/// Two entries of one author under one sequence stand in the document as one item.
@Test func aQuarantineIsTheItemAsWritten() throws {
  let entries = try Entries()
  var document = MusterChannel.Document(channel: entries.cast.channelID)
  _ = document.insert(entries.sign(20, .end(CallEnd(call: entries.call, term: 1))))
  _ = document.insert(entries.sign(20, .end(CallEnd(call: entries.call, term: 2))))
  #expect(document.digest.count == 1)
  #expect(document.digest.sum.bytes == (try Document.bytes("equivocation-id")))
}
