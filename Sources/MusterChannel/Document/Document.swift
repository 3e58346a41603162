import MusterBase
import MusterCrypto
import MusterWire

/// The replicated document of one channel: the signed entries that retention keeps.
///
/// The document is a state-based CRDT (Shapiro et al., 2011): neither the order nor the number of
/// arrivals matters (`Retention`), so documents that have received the same entries are equal, and
/// so are their digests.
public struct Document: Sendable {
  /// The outcome of inserting one received entry.
  public enum Insertion: Equatable, Sendable {
    /// The entry is kept; the removed entries made room for it.
    case inserted(removed: [SignedEntry])
    /// The entry is already in the document.
    case known
    /// Retention does not keep the entry: a newer entry replaces it, or a limit is reached.
    case superseded
    /// Another entry has the same author and sequence number; the entries of the author are
    /// removed, except a redemption.
    case quarantined(NodeID, removed: [SignedEntry])
    /// The author was already quarantined.
    case refused
  }

  /// The proof of an equivocation: two entries under one sequence number.
  struct Witness: Sendable {
    var id: EntryID
    var entries: [SignedEntry]
  }

  let channel: ChannelID
  private let exempt: NodeID?

  /// The ids of entries and equivocations, in ascending order; `items` has the entry of each id, or
  /// nil for an equivocation.
  private(set) var ids: [EntryID] = []
  private var items: [SignedEntry?] = []
  /// The sum of `ids` modulo 2^256.
  private var sum = EntryID.zero
  private var authors = PeerTable<NodeID, [SignedEntry]>()
  private var equivocations = PeerTable<NodeID, Witness>()
  private var retention: Retention
  /// The admissions of authors in a created channel, as `settle` received them last.
  private var admissions = PeerTable<NodeID, Admission>()
  private var recentlyDropped = RecentlyDropped()
  /// The number of insertions and removals so far.
  private(set) var revision: UInt64 = 0
  /// The number of changes to the entries that rights are derived from.
  private(set) var rightsVersion: UInt64 = 0
  /// The keys that the last of these changes concern.
  private var concerned: [NodeID] = []
  /// How many of them are known: more than one step of a node brings.
  private static let concernedLimit = 256
  /// The maximum amount by which one entry may raise the Lamport clock. Exhausting the clock takes
  /// 2^38 entries, which is years of the highest rate that a node accepts.
  static let lamportStep: UInt64 = 1 << 24

  /// The Lamport clock: the highest counter seen, except for jumps beyond `lamportStep`.
  public private(set) var lamport: UInt64 = 0

  /// `exempt`, the owner of a created channel, is never quarantined: its entries must stay valid,
  /// since no other member can sign replacements.
  public init(channel: ChannelID, exempt: NodeID? = nil) {
    self.init(channel: channel, exempt: exempt, policy: .standard)
  }

  package init(channel: ChannelID, exempt: NodeID?, policy: ChannelPolicy) {
    self.channel = channel
    self.exempt = exempt
    retention = Retention(owner: exempt, policy: policy)
  }

  /// The number of entries kept, where an equivocation (two proofs) counts as one.
  public var count: Int { ids.count }
  /// The authors of equivocations, sorted by id; none of their entries are kept but redemptions.
  public var quarantined: [NodeID] { equivocations.keys }
  /// The number and the sum of all ids, which are equal on two nodes exactly when their documents
  /// are equal.
  public var digest: DocumentDigest { DocumentDigest(count: UInt32(ids.count), sum: sum) }

  // MARK: Queries

  /// The entries whose id has this prefix; for an equivocation its two proofs; empty for an unknown
  /// prefix.
  public func entry(_ prefix: UInt64) -> [SignedEntry] {
    var found: [SignedEntry] = []
    var position = ids.partitionIndex { $0.prefix >= prefix }
    while position < ids.count, ids[position].prefix == prefix {
      found += entries(at: position)
      position += 1
    }
    return found
  }

  /// Whether there is an entry or an equivocation whose id has this prefix.
  public func contains(_ prefix: UInt64) -> Bool {
    let position = ids.partitionIndex { $0.prefix >= prefix }
    return position < ids.count && ids[position].prefix == prefix
  }

  /// Whether the document has the entry with this full id. A prefix does not suffice: ids with a
  /// common prefix can be produced with some effort.
  func contains(_ id: EntryID) -> Bool { index(of: id) != nil }

  /// The entry at an index of `ids`, or the two proofs of an equivocation.
  func entries(at position: Int) -> [SignedEntry] {
    if let entry = items[position] { return [entry] }
    return equivocations.first { $0.value.id == ids[position] }?.value.entries ?? []
  }

  /// The newest presence, neighbour report, redemption or joining of an author; nil if absent or of
  /// another kind.
  public func newest(_ kind: EntryBody.Kind, of author: NodeID) -> SignedEntry? {
    retention.registers[kind]?[author]
  }

  /// The highest Lamport counter among the kept entries of an author; 0 without entries.
  public func newestLamport(of author: NodeID) -> UInt64 {
    (authors[author] ?? []).reduce(0) { max($0, $1.entry.lamport) }
  }

  /// The number of kept entries of one kind by one author.
  func count(of kind: EntryBody.Kind, by author: NodeID) -> Int {
    (authors[author] ?? []).count { $0.entry.body.kind == kind }
  }

  /// All entries of one kind: presences, neighbour reports, redemptions and joinings by author, the
  /// others in document order.
  public func all(_ kind: EntryBody.Kind) -> [SignedEntry] { retention.all(kind) }

  /// The owner's newest grant for a key, if there is one, and those of other members.
  func grants(for subject: NodeID) -> [SignedEntry] { retention.grants(for: subject) }

  /// The keys whose redemptions and grants have come or gone since `rightsVersion` was `version`;
  /// nil if the change may concern any key.
  func concerned(since version: UInt64) -> [NodeID]? {
    let changes = rightsVersion &- version
    return changes <= concerned.count ? concerned.suffix(Int(changes)) : nil
  }

  /// The id that represents a quarantined author in the document.
  static func equivocationID(of author: NodeID) -> EntryID {
    SignedEntry.id(of: Array("muster/1 fence".utf8) + author.key.bytes)
  }

  // MARK: Inserting

  /// Inserts an entry if retention keeps it.
  public mutating func insert(_ entry: SignedEntry) -> Insertion {
    let author = entry.entry.author
    guard !isBound(entry) || equivocations.index(of: author) == nil else { return .refused }
    guard !contains(entry.id) else { return .known }
    if isBound(entry), let other = contradicting(entry),
      let quarantined = quarantine(author, [other, entry].sorted())
    {
      return quarantined
    }
    return keep(entry)
  }

  /// Whether an entry counts as evidence of an equivocation, and goes when its author is
  /// quarantined. A redemption does not: without it, newcomers could not tell that the author has
  /// been a member, and would not admit the proofs.
  private func isBound(_ entry: SignedEntry) -> Bool {
    entry.entry.author != exempt && entry.entry.body.kind != .redemption
  }

  /// Applies the admissions of authors: their entries count to the shares of their principals, and
  /// entries for which `holds` is false are removed and returned. `holds` must depend on nothing
  /// but the admission of the author, and the kind and Lamport counter of the entry. A quarantine
  /// ends when one of its proofs is not held, since newcomers do not admit that proof. `changed`:
  /// the only authors whose admissions differ from those applied last; nil if any may.
  package mutating func settle(
    _ admissions: PeerTable<NodeID, Admission>, changed: [NodeID]? = nil,
    holds: (SignedEntry) -> Bool
  ) -> [SignedEntry] {
    let former = self.admissions
    self.admissions = admissions
    var removed: [SignedEntry] = []
    for author in changed ?? authors.keys {
      let admission = admissions[author]
      guard admission == nil || admission != former[author], let entries = authors[author]
      else { continue }
      removed += entries.filter { !holds($0) }
      retention.move(author, to: admission?.principal ?? author)
    }
    for entry in removed {
      retention.remove(entry)
      forget(entry)
    }
    for (author, witness) in equivocations where !witness.entries.allSatisfy(holds) {
      equivocations[author] = nil
      takeOut(witness.id)
    }
    return removed
  }

  private mutating func keep(_ entry: SignedEntry) -> Insertion {
    // A single entry with an absurd counter must not exhaust the Lamport clock for all members.
    lamport = max(lamport, min(entry.entry.lamport, lamport &+ Self.lamportStep))
    guard let removed = retention.insert(entry, of: admittedPrincipal(of: entry)) else {
      note(entry)
      return .superseded
    }
    add(entry.id, entry)
    let author = entry.entry.author
    if authors.index(of: author) == nil { authors[author] = [] }
    _ = authors.update(author) { list in
      list.insert(entry, at: list.partitionIndex { $0.entry.sequence >= entry.entry.sequence })
    }
    touch(entry)
    for old in removed {
      forget(old)
      note(old)
    }
    return .inserted(removed: removed)
  }

  /// The principal to whose share an entry counts (`FairQuota`).
  func principal(of entry: SignedEntry) -> NodeID {
    retention.principal(of: entry, by: admittedPrincipal(of: entry))
  }

  private func admittedPrincipal(of entry: SignedEntry) -> NodeID {
    admissions[entry.entry.author]?.principal ?? entry.entry.author
  }

  private mutating func note(_ entry: SignedEntry) {
    if isBound(entry) { recentlyDropped.note(entry) }
  }

  /// Another entry with the same author and sequence number, kept or recently dropped.
  private func contradicting(_ entry: SignedEntry) -> SignedEntry? {
    if let list = authors[entry.entry.author] {
      let position = list.partitionIndex { $0.entry.sequence >= entry.entry.sequence }
      let same = list[position...].prefix { $0.entry.sequence == entry.entry.sequence }
      if let other = same.first(where: isBound) { return other }
    }
    return recentlyDropped.contradicting(entry)
  }

  /// Quarantines an author and removes its entries, except a redemption. Beyond
  /// `Limits.quarantinedAuthors`, only the authors with the smallest equivocation ids are
  /// quarantined, the same ones on every node; nil means that `author` is not one of these and
  /// keeps its entries.
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
    let removed = (authors[author] ?? []).filter(isBound)
    for entry in removed {
      retention.remove(entry)
      forget(entry)
    }
    equivocations[author] = Witness(id: id, entries: witnesses)
    add(id, nil)
    rightsVersion &+= 1
    concerned = []
    return .quarantined(author, removed: removed)
  }

  /// Removes an entry that retention has dropped.
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
    let position = ids.partitionIndex { $0 >= id }
    ids.insert(id, at: position)
    items.insert(entry, at: position)
    sum = sum &+ id
    revision &+= 1
  }

  private mutating func takeOut(_ id: EntryID) {
    guard let position = index(of: id) else { return }
    ids.remove(at: position)
    items.remove(at: position)
    sum = sum &- id
    revision &+= 1
  }

  private mutating func touch(_ entry: SignedEntry) {
    switch entry.entry.body {
    case .redemption: concerned.append(entry.entry.author)
    case .grant(let grant) where !grant.isBearer: concerned.append(grant.subject)
    case .grant, .epoch: concerned = []
    default: return
    }
    rightsVersion &+= 1
    if concerned.count > Self.concernedLimit { concerned.removeFirst() }
  }

  private func index(of id: EntryID) -> Int? {
    let position = ids.partitionIndex { $0 >= id }
    return position < ids.count && ids[position] == id ? position : nil
  }
}

extension Document {
  /// The violated invariants of this document (for tests); empty if all hold.
  package func checkInvariants() -> [String] {
    var faults = retention.checkInvariants()
    var expected = EntryID.zero
    var total = 0
    for index in ids.indices {
      if index > 0, ids[index - 1] >= ids[index] { faults.append("ids are out of order") }
      if let item = items[index], item.id != ids[index] {
        faults.append("an id is of another entry")
      }
      if items[index] != nil { total += 1 }
      expected = expected &+ ids[index]
    }
    if items.count != ids.count { faults.append("\(items.count) items for \(ids.count) ids") }
    if expected != sum { faults.append("the digest is of other entries") }
    if total != retention.count {
      faults.append("\(total) entries are held and \(retention.count) retained")
    }
    if equivocations.count > Limits.quarantinedAuthors { faults.append("too many quarantined") }
    var listed = 0
    for (author, list) in authors {
      listed += list.count
      if list.isEmpty { faults.append("an author without entries") }
      if equivocations.index(of: author) != nil, list.contains(where: isBound) {
        faults.append("entries of a quarantined author")
      }
      let repeats = zip(list, list.dropFirst()).contains { a, b in
        a.entry.sequence > b.entry.sequence
          || a.entry.sequence == b.entry.sequence && isBound(a) && isBound(b)
      }
      if repeats, equivocations.count < Limits.quarantinedAuthors {
        faults.append("sequences of an author are out of order")
      }
    }
    if listed != total { faults.append("\(listed) entries by author of \(total)") }
    return faults
  }
}

extension Array {
  /// The first index at which `holds` is true, or `count`, by binary search; `holds` must be true
  /// for all later elements, too.
  func partitionIndex(where holds: (Element) -> Bool) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if holds(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}

extension Array where Element: Comparable {
  /// Whether a sorted array contains an element, by binary search.
  func containsInOrder(_ element: Element) -> Bool {
    let position = partitionIndex { $0 >= element }
    return position < count && self[position] == element
  }
}
