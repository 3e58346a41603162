import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// How principals share the space of a document. Entries of unknown kinds stand for all that have a
/// limit per author; every failure names its seed.
struct FairQuotaTests {
  /// A member's entries stay, whatever other keys do that came by one invite.
  @Test func theKeysOfOneInviteShareOneQuota() {
    let guests = 2...40 as ClosedRange<UInt64>
    var document = document(principals: guests.map { ($0, 900) })
    let own = entries(of: 1, count: Limits.unknownEntriesPerAuthor, newest: 100)
    for entry in own { _ = document.insert(entry) }
    for guest in guests {
      for entry in entries(of: guest, count: 20, newest: 1 << 40) { _ = document.insert(entry) }
    }
    #expect(document.count == Limits.unknownEntries)
    #expect(own.allSatisfy { document.contains($0.id.prefix) })
  }

  /// Without entries of others, one principal may use all the space.
  @Test func spaceThatNobodyNeedsIsForAll() {
    var document = document(principals: [])
    for author in 1...9 as ClosedRange<UInt64> {
      for entry in entries(of: author, count: 32, newest: 100) { _ = document.insert(entry) }
    }
    #expect(document.count == Limits.unknownEntries)
  }

  /// With more principals than space, the newest entries stay, one of each.
  @Test(arguments: [1, 2] as [UInt64])
  func ofTooManyPrincipalsThoseWithTheNewestEntriesStay(seed: UInt64) {
    var prng = PRNG(seed: seed)
    let authors = 1...UInt64(Limits.unknownEntries + 40)
    let all = authors.flatMap { author in
      entries(of: author, count: 2, newest: author + 10)
    }
    let document = Document.of(prng.permuted(all))
    #expect(document.count == Limits.unknownEntries)
    for author in authors {
      let id = testIdentity(author).id
      let newest = all.filter { $0.entry.author == id }.max()
      let isKept = newest.map { document.contains($0.id.prefix) } ?? false
      #expect(isKept == (author > 40), "seed \(seed), author \(author)")
    }
  }

  /// The document keeps the entries that the definition of max-min shares names, whatever their
  /// order of arrival.
  @Test(arguments: 1...8 as ClosedRange<UInt64>)
  func theOrderOfArrivalMakesNoDifference(seed: UInt64) {
    var prng = PRNG(seed: seed)
    let principals = (1...UInt64(6 + prng.below(20))).map { author in
      (author, prng.chance(0.7) ? 900 + UInt64(prng.below(4)) : author)
    }
    var all: [SignedEntry] = []
    for (author, _) in principals {
      for number in 0..<UInt64(prng.below(2) * 60 + prng.below(30)) {
        all.append(
          Entries.signed(
            author, sequence: number, lamport: UInt64(prng.below(200)), .unknown(kind: 77, [1])))
      }
    }
    let expected = Oracle(principals: principals, all).kept
    let sum = expected.reduce(EntryID.zero) { $0 &+ $1.id }
    for _ in 0..<2 {
      var document = document(principals: principals)
      for entry in prng.permuted(all) { _ = document.insert(entry) }
      #expect(
        document.digest == DocumentDigest(count: UInt32(expected.count), sum: sum), "seed \(seed)")
      #expect(document.checkInvariants().isEmpty, "seed \(seed)")
    }
  }

  /// Documents that filled up before and after the principals were known become the same.
  @Test(arguments: 1...6 as ClosedRange<UInt64>)
  func documentsMeetWhenThePrincipalsAreKnown(seed: UInt64) {
    var prng = PRNG(seed: seed)
    let principals = (1...20 as ClosedRange<UInt64>).map { ($0, 900 + $0 % 3) }
    let all = principals.flatMap { author, _ in
      entries(of: author, count: 1 + prng.below(30), newest: UInt64(40 + prng.below(100)))
    }
    var early = document(principals: principals)
    for entry in prng.permuted(all) { _ = early.insert(entry) }
    var late = Document.of(prng.permuted(all))
    _ = late.settle(admissions(principals)) { _ in true }
    let (a, b) = (kept(all, in: early), kept(all, in: late))
    for entry in prng.permuted(b) { _ = early.insert(entry) }
    for entry in prng.permuted(a) { _ = late.insert(entry) }
    #expect(early.digest == late.digest, "seed \(seed)")
    #expect(late.checkInvariants().isEmpty, "seed \(seed)")
  }

  private func kept(_ entries: [SignedEntry], in document: Document) -> [SignedEntry] {
    entries.filter { document.contains($0.id.prefix) }
  }

  private func admissions(
    _ principals: [(author: UInt64, principal: UInt64)]
  ) -> PeerTable<NodeID, Admission> {
    var admissions = PeerTable<NodeID, Admission>()
    for (author, principal) in principals {
      admissions[testIdentity(author).id] = Admission(
        principal: testIdentity(principal).id, role: .presenter)
    }
    return admissions
  }

  private func document(principals: [(author: UInt64, principal: UInt64)]) -> Document {
    var document = Document(channel: testKey.channelID)
    _ = document.settle(admissions(principals)) { _ in true }
    return document
  }

  private func entries(of author: UInt64, count: Int, newest: UInt64) -> [SignedEntry] {
    (0..<count).map { number in
      Entries.signed(
        author, sequence: UInt64(number), lamport: newest - UInt64(number),
        .unknown(kind: 77, [1]))
    }
  }
}

/// The shares by their definition: the quota of each principal first, then that of each author.
private struct Oracle {
  let kept: [SignedEntry]

  init(principals: [(author: UInt64, principal: UInt64)], _ all: [SignedEntry]) {
    var authors: [(principal: NodeID, entries: [SignedEntry])] = []
    for (author, principal) in principals {
      let id = testIdentity(author).id
      let own = all.filter { $0.entry.author == id }.sorted(by: >)
      authors.append((testIdentity(principal).id, Array(own.prefix(32))))
    }
    let ids = Set(authors.map(\.principal)).sorted()
    let needs = ids.map { id in
      authors.filter { $0.principal == id }.reduce(0) { $0 + $1.entries.count }
    }
    // The principals with the lowest ids give way first.
    let quotas = Self.shares(of: Limits.unknownEntries, needs) { $0 > $1 }
    kept = zip(ids, quotas).flatMap { id, quota in
      let own = authors.filter { $0.principal == id }.map(\.entries)
      let counts = Self.shares(of: quota, own.map(\.count)) { a, b in
        // Of authors with equally many entries, those whose next one is newer keep it.
        let level = Self.level(of: quota, own.map(\.count))
        return own[a][level] > own[b][level]
      }
      return zip(own, counts).flatMap { $0.prefix($1) }
    }
  }

  /// The highest number of entries that everyone may have who needs as many.
  private static func level(of capacity: Int, _ needs: [Int]) -> Int {
    (0...capacity).last { level in needs.reduce(0) { $0 + min($1, level) } <= capacity } ?? 0
  }

  /// Max-min shares; what remains goes to one each of those with unmet needs, in this order.
  private static func shares(
    of capacity: Int, _ needs: [Int], precedes: (Int, Int) -> Bool
  ) -> [Int] {
    let level = level(of: capacity, needs)
    var shares = needs.map { min($0, level) }
    let rest = capacity - shares.reduce(0, +)
    let unmet = needs.indices.filter { needs[$0] > level }.sorted(by: precedes)
    for index in unmet.prefix(rest) { shares[index] += 1 }
    return shares
  }
}
