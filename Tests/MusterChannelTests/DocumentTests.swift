import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// Retention in a document, and its reports of changes.
struct DocumentTests {
  @Test func anEntryIsKeptOnce() {
    let entry = Entries.signed(1, sequence: 1, lamport: 3, Entries.message("hello"))
    var document = Document(channel: testKey.channelID)
    #expect(document.digest == DocumentDigest(count: 0, sum: .zero))
    #expect(document.insert(entry) == .inserted(removed: []))
    let digest = document.digest
    #expect(digest == DocumentDigest(count: 1, sum: entry.id))
    #expect(document.insert(entry) == .known)
    #expect(document.digest == digest && document.count == 1 && document.lamport == 3)
    #expect(document.contains(entry.id.prefix))
    #expect(document.entry(entry.id.prefix) == [entry])
    #expect(!document.contains(entry.id.prefix &+ 1))
    #expect(document.entry(entry.id.prefix &+ 1).isEmpty)
  }

  @Test func ofAnAuthorsPresencesTheNewestCounts() {
    let old = Entries.signed(1, sequence: 2, lamport: 1, Entries.presence("old"))
    let new = Entries.signed(1, sequence: 1, lamport: 2, Entries.presence("new"))
    var document = Document(channel: testKey.channelID)
    #expect(document.insert(old) == .inserted(removed: []))
    #expect(document.insert(new) == .inserted(removed: [old]))
    #expect(document.insert(old) == .superseded)
    #expect(document.newest(.presence, of: testIdentity(1).id) == new)
    #expect(document.newest(.neighbourReport, of: testIdentity(1).id) == nil)
    #expect(document.all(.presence) == [new])
    #expect(document.digest == DocumentDigest(count: 1, sum: new.id))
  }

  /// Claims and ends share one limit, so a new claim can evict an end.
  @Test func aClaimEvictsAnEnd() {
    var document = Document(channel: testKey.channelID)
    let end = Entries.signed(1, sequence: 0, lamport: 1, Entries.end(1))
    _ = document.insert(end)
    for number in 1..<UInt64(Limits.callEntriesPerAuthor) {
      let claim = Entries.signed(1, sequence: number, lamport: 1 + number, Entries.claim(number))
      #expect(document.insert(claim) == .inserted(removed: []))
    }
    let last = Entries.signed(1, sequence: 900, lamport: 900, Entries.claim(900))
    #expect(document.insert(last) == .inserted(removed: [end]))
    #expect(document.all(.end).isEmpty)
    #expect(document.all(.claim).count == Limits.callEntriesPerAuthor)
  }

  @Test func oneAuthorCannotPushOutOthers() {
    var document = Document(channel: testKey.channelID)
    let mine = Entries.signed(1, sequence: 1, lamport: 1, .unknown(kind: 99, [1]))
    _ = document.insert(mine)
    for number in 0..<UInt64(3 * Limits.unknownEntriesPerAuthor) {
      _ = document.insert(
        Entries.signed(2, sequence: number, lamport: 100 + number, .unknown(kind: 99, [2])))
    }
    #expect(document.contains(mine.id.prefix))
    #expect(document.count == 1 + Limits.unknownEntriesPerAuthor)
  }

  @Test func ownersMatterInCreatedChannelsOnly() {
    let change = EpochChange(
      number: 1, keyID: otherKey.keyID, previous: .zero, removed: [])
    let grant = Grant(
      subject: testIdentity(3).id, role: .presenter)
    let words = [
      Entries.signed(1, sequence: 1, lamport: 1, .epoch(change)),
      Entries.signed(1, sequence: 2, lamport: 2, .grant(grant)),
    ]
    let others = [Entries.signed(2, sequence: 1, lamport: 1, .epoch(change))]
    #expect(Document.of(words + others).count == 0)
    let created = Document.of(words + others, exempt: testIdentity(1).id)
    #expect(created.all(.epoch) == [words[0]] && created.all(.grant) == [words[1]])
  }

  /// All entries of the owner must stay, and be the same on every node.
  @Test func theOwnerIsNeverQuarantined() {
    let owner = testIdentity(1).id
    let words =
      Entries.contradiction(1) + [
        Entries.signed(1, sequence: 500, lamport: 1, Entries.presence("old")),
        Entries.signed(1, sequence: 500, lamport: 9, Entries.presence("new")),
      ]
    let expected = Document.of(words, exempt: owner)
    #expect(expected.quarantined.isEmpty && expected.count == 3)
    #expect(expected.newest(.presence, of: owner) == words[3])
    #expect(Document.of(words.reversed(), exempt: owner).digest == expected.digest)
  }
}
