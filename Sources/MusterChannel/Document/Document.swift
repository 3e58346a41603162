import MusterBase
import MusterCrypto
import MusterWire

/// The signed entries of one channel that are kept, and nothing but a function of all that came.
///
/// What is kept of a set of entries does not depend on the order in which they came nor on how
/// often (`Retention`). So two documents that have seen the same are the same, which their digests
/// show.
public struct Document: Sendable {
  public enum Insertion: Equatable, Sendable {
    /// Kept; those removed made room for it.
    case inserted(removed: [SignedEntry])
    case known
    /// Older than what is kept, or beyond the bound.
    case superseded
    /// It contradicts another entry of its author, none of which count any more.
    case quarantined(NodeID, removed: [SignedEntry])
    /// Its author is fenced.
    case refused
  }

  /// Two entries under one sequence.
  struct Witness: Sendable {
    var id: EntryID
    var entries: [SignedEntry]
  }

  let channel: ChannelID
  private let exempt: NodeID?
  package var flaw: MeshFlaw?

  /// Ids of entries and fences, sorted, and what each is of: nil for a fence.
  private(set) var ids: [EntryID] = []
  private var items: [SignedEntry?] = []
  /// The sum of `ids`.
  private var sum = EntryID.zero
  private var authors = PeerTable<NodeID, [SignedEntry]>()
  private var equivocations = PeerTable<NodeID, Witness>()
  private var retention: Retention
  private var passed = PassedEntries()
  private var versions = [UInt64](repeating: 0, count: EntryBody.Kind.allCases.count + 2)
  /// How far one entry may raise the counter.
  static let lamportStep: UInt64 = 1 << 32

  /// What this node's own entries are counted on from: the highest Lamport counter seen, but for
  /// those that no cause explains.
  public private(set) var lamport: UInt64 = 0

  /// `exempt`, the owner of a created channel, is never fenced: all its word must stand.
  public init(channel: ChannelID, exempt: NodeID? = nil) {
    self.channel = channel
    self.exempt = exempt
    retention = Retention(owner: exempt)
  }

  public var count: Int { ids.count }
  public var quarantined: [NodeID] { equivocations.keys }
  public var digest: DocumentDigest { DocumentDigest(count: UInt32(ids.count), sum: sum) }

  // MARK: Looking

  /// The entry whose id begins so; the two witnesses of a fence; nothing for what is not known.
  public func entry(_ prefix: UInt64) -> [SignedEntry] {
    var found: [SignedEntry] = []
    var position = ids.firstPlace { $0.prefix >= prefix }
    while position < ids.count, ids[position].prefix == prefix {
      found += entries(at: position)
      position += 1
    }
    return found
  }

  /// Whether there is an item whose id begins so.
  public func contains(_ prefix: UInt64) -> Bool {
    let position = ids.firstPlace { $0.prefix >= prefix }
    return position < ids.count && ids[position].prefix == prefix
  }

  /// Whether it is kept, by its whole id: two that begin alike can be made with some effort.
  func contains(_ id: EntryID) -> Bool { index(of: id) != nil }

  /// What stands behind one of `ids`.
  func entries(at position: Int) -> [SignedEntry] {
    if let entry = items[position] { return [entry] }
    return equivocations.first { $0.value.id == ids[position] }?.value.entries ?? []
  }

  /// The newest presence, hearing or redemption of an author.
  public func newest(_ kind: EntryBody.Kind, of author: NodeID) -> SignedEntry? {
    retention.registers[kind]?[author]
  }

  /// The highest Lamport counter of what is kept of an author; 0 when nothing is.
  public func newestLamport(of author: NodeID) -> UInt64 {
    (authors[author] ?? []).reduce(0) { max($0, $1.entry.lamport) }
  }

  /// Everything of one kind: presences, hearings and redemptions by author, the rest in the order.
  public func all(_ kind: EntryBody.Kind) -> [SignedEntry] { retention.all(kind) }

  /// Counts the changes of one kind, so that readers need not look at what has not changed.
  public func version(of kind: EntryBody.Kind) -> UInt64 { versions[Int(kind.rawValue)] }

  /// What stands in the document for a fenced author.
  static func equivocationID(of author: NodeID) -> EntryID {
    SignedEntry.id(of: Array("muster/1 fence".utf8) + author.key.bytes)
  }

  // MARK: Inserting

  /// Takes an entry in, if the rules keep it, and says what became of it.
  public mutating func insert(_ entry: SignedEntry) -> Insertion {
    let author = entry.entry.author
    guard equivocations.index(of: author) == nil else { return .refused }
    guard !contains(entry.id) else { return .known }
    if author != exempt, let other = contradicting(entry),
      let quarantined = quarantine(author, [other, entry].sorted())
    {
      return quarantined
    }
    return keep(entry)
  }

  private mutating func keep(_ entry: SignedEntry) -> Insertion {
    // One lie must not use up the counter for all: it is followed only so far at a time.
    lamport = max(lamport, min(entry.entry.lamport, lamport &+ Self.lamportStep))
    if flaw == .forgottenEnd, entry.entry.body.kind == .end { return .superseded }
    guard let removed = retention.insert(entry, byArrival: flaw == .mergeByArrival) else {
      passed.note(entry)
      return .superseded
    }
    add(entry.id, entry)
    let author = entry.entry.author
    if authors.index(of: author) == nil { authors[author] = [] }
    _ = authors.update(author) { list in
      list.insert(entry, at: list.firstPlace { $0.entry.sequence >= entry.entry.sequence })
    }
    touch(entry)
    for old in removed {
      forget(old)
      passed.note(old)
    }
    return .inserted(removed: removed)
  }

  /// Another entry under the same sequence, kept or lately let pass.
  private func contradicting(_ entry: SignedEntry) -> SignedEntry? {
    if let list = authors[entry.entry.author] {
      let position = list.firstPlace { $0.entry.sequence >= entry.entry.sequence }
      if position < list.count, list[position].entry.sequence == entry.entry.sequence {
        return list[position]
      }
    }
    return passed.contradicting(entry)
  }

  /// Takes out all of an author's entries. Of more authors than can be fenced, those with the
  /// smallest fence ids are, for everyone alike; nil for one beyond, whose entries stay.
  private mutating func quarantine(_ author: NodeID, _ witnesses: [SignedEntry]) -> Insertion? {
    let id = Self.equivocationID(of: author)
    if equivocations.count >= Limits.quarantinedAuthors {
      guard let last = equivocations.max(by: { $0.value.id < $1.value.id }), id < last.value.id
      else {
        return nil
      }
      equivocations[last.key] = nil
      takeOut(last.value.id)
    }
    let removed = authors[author] ?? []
    for entry in removed {
      retention.remove(entry)
      takeOut(entry.id)
    }
    authors[author] = nil
    equivocations[author] = Witness(id: id, entries: witnesses)
    add(id, nil)
    for position in versions.indices { versions[position] &+= 1 }
    return .quarantined(author, removed: removed)
  }

  /// Takes out what the retention has let go already.
  private mutating func forget(_ entry: SignedEntry) {
    let author = entry.entry.author
    let isLast = authors.update(author) { list in
      list.removeAll { $0 == entry }
      return list.isEmpty
    }
    if isLast ?? false { authors[author] = nil }
    takeOut(entry.id)
    touch(entry)
  }

  private mutating func add(_ id: EntryID, _ entry: SignedEntry?) {
    let position = ids.firstPlace { $0 >= id }
    ids.insert(id, at: position)
    items.insert(entry, at: position)
    sum = sum &+ id
  }

  private mutating func takeOut(_ id: EntryID) {
    guard let position = index(of: id) else { return }
    ids.remove(at: position)
    items.remove(at: position)
    sum = sum &- id
  }

  private mutating func touch(_ entry: SignedEntry) {
    if let kind = entry.entry.body.kind { versions[Int(kind.rawValue)] &+= 1 }
  }

  private func index(of id: EntryID) -> Int? {
    let position = ids.firstPlace { $0 >= id }
    return position < ids.count && ids[position] == id ? position : nil
  }
}

extension Array {
  /// The first place where `holds` is true, which it must be from there on.
  func firstPlace(where holds: (Element) -> Bool) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if holds(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
