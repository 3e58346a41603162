import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// An author that signs two entries under one sequence number is quarantined on every node.
struct EquivocationTests {
  private func equivocationID(_ author: NodeID) -> EntryID {
    SignedEntry.id(of: Array("muster/1 fence".utf8) + author.key.bytes)
  }

  @Test func allEntriesOfTheAuthorAreRemoved() {
    let author = testIdentity(1).id
    let pair = Entries.contradiction(1)
    let presence = Entries.signed(1, sequence: 1, lamport: 1, Entries.presence("one"))
    let other = Entries.signed(2, sequence: 500, lamport: 1, Entries.message("another's"))
    var document = Document.of([presence, other, pair[0]])
    guard case .quarantined(author, let removed) = document.insert(pair[1]) else {
      Issue.record("not fenced")
      return
    }
    #expect(removed.sorted() == [presence, pair[0]].sorted())
    #expect(document.quarantined == [author] && document.all(.message) == [other])
    let id = equivocationID(author)
    #expect(document.digest == DocumentDigest(count: 2, sum: id &+ other.id))
    for entry in pair + [presence] { #expect(document.insert(entry) == .refused) }
    #expect(document.entry(id.prefix).sorted() == pair.sorted())
  }

  @Test func theProofsConvinceEveryone() {
    let first = Document.of(Entries.contradiction(1))
    let witnesses = first.entry(equivocationID(testIdentity(1).id).prefix)
    #expect(Document.of(witnesses).digest == first.digest)
    #expect(Document.of(witnesses.reversed()).digest == first.digest)
  }

  /// Both entries of the proof are older than the author's newest presence, so retention keeps
  /// neither.
  @Test func outdatedProofsConvinceToo() {
    let pair = ["this", "that"].map {
      Entries.signed(1, sequence: 5, lamport: 5, Entries.presence($0))
    }
    let newer = Entries.signed(1, sequence: 6, lamport: 6, Entries.presence("newer"))
    for entries in [[newer] + pair, [pair[0], newer, pair[1]], pair + [newer]] {
      let document = Document.of(entries)
      #expect(document.quarantined == [testIdentity(1).id])
      #expect(document.count == 1)
    }
  }

  @Test func theSameEntryAgainIsNoContradiction() {
    let old = Entries.signed(1, sequence: 5, lamport: 5, Entries.presence("old"))
    let new = Entries.signed(1, sequence: 6, lamport: 6, Entries.presence("new"))
    let document = Document.of([old, new, old, old, new])
    #expect(document.quarantined.isEmpty && document.all(.presence) == [new])
  }

  /// Beyond the limit, every node keeps the same authors in quarantine.
  @Test func quarantinesAreBoundedAlike() {
    let authors = UInt64(Limits.quarantinedAuthors + 20)
    let pairs = (1...authors).map { Entries.contradiction($0) }
    let rising = Document.of(pairs.flatMap { $0 })
    let falling = Document.of(pairs.reversed().flatMap { $0 })
    #expect(rising.quarantined.count == Limits.quarantinedAuthors)
    #expect(rising.quarantined == falling.quarantined)
    let smallest = (1...authors).map { testIdentity($0).id }
      .sorted { equivocationID($0) < equivocationID($1) }.prefix(Limits.quarantinedAuthors)
    #expect(rising.quarantined == smallest.sorted())
  }
}
