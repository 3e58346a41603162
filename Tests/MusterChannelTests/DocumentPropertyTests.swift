import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// A document is a function of the set of entries; every failure names its seed.
struct DocumentPropertyTests {
  @Test(arguments: 1...40 as ClosedRange<UInt64>)
  func orderAndRepetitionMakeNoDifference(seed: UInt64) {
    var prng = PRNG(seed: seed)
    var entries = Entries.some(120, authors: 6, &prng)
    if seed.isMultiple(of: 2) {
      for author in 1...2 as ClosedRange<UInt64> { entries += Entries.contradiction(author) }
    }
    let expected = Document.of(entries)
    for _ in 0..<4 {
      let again = prng.permuted(entries + prng.permuted(entries).prefix(30))
      let document = Document.of(again)
      #expect(document.digest == expected.digest, "seed \(seed)")
      #expect(document.summary == expected.summary, "seed \(seed)")
    }
  }

  /// Merging is commutative, associative and idempotent: three parts give the same whole in any
  /// order.
  @Test(arguments: 1...30 as ClosedRange<UInt64>)
  func partsMergeToTheWhole(seed: UInt64) {
    var prng = PRNG(seed: seed)
    let entries = Entries.some(150, authors: 5, &prng)
    let expected = Document.of(entries)
    var shares: [[SignedEntry]] = [[], [], []]
    for entry in entries {
      shares[prng.below(3)].append(entry)
      if prng.chance(0.5) { shares[prng.below(3)].append(entry) }
    }
    let parts = shares.map { Document.of($0) }
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 0, 1, 2, 1]] {
      var merged = Document(channel: testKey.channelID)
      for part in order {
        for entry in entries.flatMap({ parts[part].entry($0.id.prefix) }) {
          _ = merged.insert(entry)
        }
      }
      #expect(merged.digest == expected.digest, "seed \(seed)")
    }
  }

  /// The reported insertions and removals add up to the entries in the document.
  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func insertionsAreReportedAsTheyHappen(seed: UInt64) {
    var prng = PRNG(seed: seed)
    var entries = Entries.some(200, authors: 3, &prng)
    entries += Entries.contradiction(2)
    var document = Document(channel: testKey.channelID)
    var held: [SignedEntry] = []
    for entry in prng.permuted(entries) {
      switch document.insert(entry) {
      case .inserted(let removed):
        held.append(entry)
        held.removeAll(where: removed.contains)
      case .quarantined(_, let removed): held.removeAll(where: removed.contains)
      case .known, .superseded, .refused: break
      }
      #expect(document.count == held.count + document.quarantined.count, "seed \(seed)")
    }
    #expect(held.allSatisfy { document.entry($0.id.prefix) == [$0] }, "seed \(seed)")
  }
}
