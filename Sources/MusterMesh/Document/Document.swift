import MusterBase
import MusterCrypto
import MusterWire

/// The signed entries of one channel that are kept, and nothing but a function of all that came.
///
/// What is kept of a set of entries does not depend on the order in which they came nor on how often
/// (`Retention`). So two documents that have seen the same are the same, which their digests show.
public struct Document: Sendable {
  public enum Insertion: Equatable, Sendable {
    /// Kept; those removed made room for it.
    case inserted(removed: [SignedEntry])
    case known
    /// Older than what is kept, or beyond the bound.
    case superseded
    /// It contradicts another entry of its author, none of which count any more.
    case fenced(NodeID, removed: [SignedEntry])
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
  private var fences = PeerTable<NodeID, Witness>()
  private var retention: Retention
  private var versions = [UInt64](repeating: 0, count: EntryBody.Kind.allCases.count + 2)
  /// The highest Lamport counter seen.
  public private(set) var lamport: UInt64 = 0

  /// `exempt`, the owner of a created channel, is never fenced: its word must stand.
  public init(channel: ChannelID, exempt: NodeID? = nil) {
    self.channel = channel
    self.exempt = exempt
    retention = Retention(owner: exempt)
  }

  public var count: Int { ids.count }
  public var fenced: [NodeID] { fences.keys }
  public var digest: DocumentDigest { DocumentDigest(count: UInt32(ids.count), sum: sum) }

  // MARK: Looking

  /// The entry whose id begins so; the two witnesses of a fence; nothing for what is not known.
  public func entry(_ prefix: UInt64) -> [SignedEntry] {
    guard let place = place(of: prefix) else { return [] }
    if let entry = items[place] { return [entry] }
    return fences.first { $0.value.id == ids[place] }?.value.entries ?? []
  }

  public func contains(_ prefix: UInt64) -> Bool { place(of: prefix) != nil }

  /// The newest presence, hearing or redemption of an author.
  public func newest(_ kind: EntryBody.Kind, of author: NodeID) -> SignedEntry? {
    retention.registers[kind]?[author]
  }

  /// Everything of one kind: presences, hearings and redemptions by author, the rest in the order.
  public func all(_ kind: EntryBody.Kind) -> [SignedEntry] { retention.all(kind) }

  /// Counts the changes of one kind, so that readers need not look at what has not changed.
  public func version(of kind: EntryBody.Kind) -> UInt64 { versions[Int(kind.rawValue)] }

  // MARK: Inserting

  public mutating func insert(_ entry: SignedEntry) -> Insertion {
    let author = entry.entry.author
    guard fences.index(of: author) == nil else { return .refused }
    if let other = sameSequence(as: entry) {
      guard other != entry else { return .known }
      if author != exempt { return fence(author, [other, entry].sorted()) }
      // The owner's word must stand, and be the same everywhere: the smaller id is it.
      guard entry.id < other.id else { return .superseded }
      remove(other)
      return keep(entry, alsoRemoved: [other])
    }
    return keep(entry, alsoRemoved: [])
  }

  private mutating func keep(
    _ entry: SignedEntry, alsoRemoved: [SignedEntry]
  ) -> Insertion {
    lamport = max(lamport, entry.entry.lamport)
    if flaw == .forgottenEnd, entry.entry.body.kind == .end { return .superseded }
    guard let removed = retention.insert(entry, byArrival: flaw == .mergeByArrival) else {
      return .superseded
    }
    add(entry.id, entry)
    let sequence = entry.entry.sequence
    if authors.index(of: entry.entry.author) == nil { authors[entry.entry.author] = [] }
    _ = authors.update(entry.entry.author) { list in
      list.insert(entry, at: list.firstPlace { $0.entry.sequence >= sequence })
    }
    for old in removed { forget(old) }
    touch(entry)
    return .inserted(removed: alsoRemoved + removed)
  }

  private func sameSequence(as entry: SignedEntry) -> SignedEntry? {
    guard let list = authors[entry.entry.author] else { return nil }
    let place = list.firstPlace { $0.entry.sequence >= entry.entry.sequence }
    guard place < list.count, list[place].entry.sequence == entry.entry.sequence else { return nil }
    return list[place]
  }

  private mutating func fence(_ author: NodeID, _ witnesses: [SignedEntry]) -> Insertion {
    let removed = authors[author] ?? []
    for entry in removed { remove(entry) }
    guard fences.count < Limits.fencedAuthors else { return .fenced(author, removed: removed) }
    let id = SignedEntry.id(of: Array("muster/1 fence".utf8) + author.key.bytes)
    fences[author] = Witness(id: id, entries: witnesses)
    add(id, nil)
    for place in versions.indices { versions[place] &+= 1 }
    return .fenced(author, removed: removed)
  }

  /// Takes an entry out of everything.
  private mutating func remove(_ entry: SignedEntry) {
    retention.remove(entry)
    forget(entry)
    touch(entry)
  }

  /// Takes out what the retention has let go already.
  private mutating func forget(_ entry: SignedEntry) {
    let author = entry.entry.author
    _ = authors.update(author) { list in list.removeAll { $0.id == entry.id } }
    if authors[author]?.isEmpty ?? false { authors[author] = nil }
    let place = ids.firstPlace { $0 >= entry.id }
    guard place < ids.count, ids[place] == entry.id else { return }
    ids.remove(at: place)
    items.remove(at: place)
    sum = sum &- entry.id
  }

  private mutating func add(_ id: EntryID, _ entry: SignedEntry?) {
    let place = ids.firstPlace { $0 >= id }
    ids.insert(id, at: place)
    items.insert(entry, at: place)
    sum = sum &+ id
  }

  private mutating func touch(_ entry: SignedEntry) {
    if let kind = entry.entry.body.kind { versions[Int(kind.rawValue)] &+= 1 }
  }

  private func place(of prefix: UInt64) -> Int? {
    let place = ids.firstPlace { $0.prefix >= prefix }
    return place < ids.count && ids[place].prefix == prefix ? place : nil
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
