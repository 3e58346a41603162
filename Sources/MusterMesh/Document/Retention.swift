import MusterBase
import MusterWire

/// Which entries a document keeps: a function of the set of entries alone.
///
/// Of presences, hearings, redemptions and grants, the newest for each author (and subject), and of
/// these the newest so many. Of messages, call entries, epochs and unknown kinds, each author's
/// newest so many, and of all those the newest so many. "Newest of each, then newest of all" gives
/// the same whether entries are left out early or at the end: what is left out has so many newer
/// ones before it that more entries can only add to them.
struct Retention: Sendable {
  /// One newest entry for each key.
  struct Registers<Key: Comparable & Sendable>: Sendable {
    let limit: Int
    private var table = PeerTable<Key, SignedEntry>()

    init(limit: Int) { self.limit = limit }

    subscript(key: Key) -> SignedEntry? { table[key] }
    var entries: [SignedEntry] { table.map(\.value) }

    /// What made room; nil when the entry is not kept.
    mutating func insert(
      _ entry: SignedEntry, under key: Key, byArrival: Bool
    ) -> [SignedEntry]? {
      if let known = table[key] {
        guard byArrival || known < entry else { return nil }
        table[key] = entry
        return [known]
      }
      table[key] = entry
      guard table.count > limit, let oldest = table.min(by: { $0.value < $1.value }) else {
        return []
      }
      table[oldest.key] = nil
      return oldest.value == entry ? nil : [oldest.value]
    }

    mutating func remove(_ entry: SignedEntry, under key: Key) {
      if table[key] == entry { table[key] = nil }
    }
  }

  /// The newest entries, with a bound for each author.
  struct Log: Sendable {
    let limit: Int
    let limitPerAuthor: Int
    /// In the order.
    private(set) var entries: [SignedEntry] = []
    private var counts = PeerTable<NodeID, Int>()

    init(limit: Int, limitPerAuthor: Int) {
      self.limit = limit
      self.limitPerAuthor = limitPerAuthor
    }

    mutating func insert(_ entry: SignedEntry) -> [SignedEntry]? {
      let author = entry.entry.author
      entries.insert(entry, at: entries.firstPlace { $0 >= entry })
      counts[author] = (counts[author] ?? 0) + 1
      var removed: [SignedEntry] = []
      if counts[author] ?? 0 > limitPerAuthor,
        let oldest = entries.firstIndex(where: { $0.entry.author == author })
      {
        removed.append(take(at: oldest))
      }
      if entries.count > limit { removed.append(take(at: 0)) }
      return removed.contains(entry) ? nil : removed
    }

    mutating func remove(_ entry: SignedEntry) {
      let place = entries.firstPlace { $0 >= entry }
      if place < entries.count, entries[place] == entry { _ = take(at: place) }
    }

    private mutating func take(at place: Int) -> SignedEntry {
      let entry = entries.remove(at: place)
      let left = (counts[entry.entry.author] ?? 1) - 1
      counts[entry.entry.author] = left == 0 ? nil : left
      return entry
    }
  }

  /// Who grants to whom.
  struct Granting: Comparable, Sendable {
    var author: NodeID
    var subject: NodeID

    static func < (a: Granting, b: Granting) -> Bool {
      a.author != b.author ? a.author < b.author : a.subject < b.subject
    }
  }

  /// Presences, hearings and redemptions, one of each for an author.
  struct PerAuthor: Sendable {
    var presence = Registers<NodeID>(limit: Limits.authors)
    var hearing = Registers<NodeID>(limit: Limits.authors)
    var redemption = Registers<NodeID>(limit: Limits.authors)

    subscript(kind: EntryBody.Kind) -> Registers<NodeID>? {
      switch kind {
      case .presence: presence
      case .hearing: hearing
      case .redemption: redemption
      case .claim, .end, .message, .grant, .epoch: nil
      }
    }
  }

  private(set) var registers = PerAuthor()
  private var grants = Registers<Granting>(limit: Limits.grants)
  private var calls = Log(
    limit: Limits.callEntries, limitPerAuthor: Limits.callEntriesPerAuthor)
  private var messages = Log(limit: Limits.messages, limitPerAuthor: Limits.messagesPerAuthor)
  private var epochs = Log(limit: Limits.epochs, limitPerAuthor: Limits.epochs)
  private var unknown = Log(
    limit: Limits.unknownEntries, limitPerAuthor: Limits.unknownEntriesPerAuthor)

  /// What had to go for the entry; nil when the entry itself is not kept.
  mutating func insert(_ entry: SignedEntry, byArrival: Bool) -> [SignedEntry]? {
    let author = entry.entry.author
    switch entry.entry.body {
    case .presence:
      return registers.presence.insert(entry, under: author, byArrival: byArrival)
    case .hearing: return registers.hearing.insert(entry, under: author, byArrival: false)
    case .redemption: return registers.redemption.insert(entry, under: author, byArrival: false)
    case .grant(let grant):
      let key = Granting(author: author, subject: grant.subject)
      return grants.insert(entry, under: key, byArrival: false)
    case .claim, .end: return calls.insert(entry)
    case .message: return messages.insert(entry)
    case .epoch: return epochs.insert(entry)
    case .unknown: return unknown.insert(entry)
    }
  }

  mutating func remove(_ entry: SignedEntry) {
    let author = entry.entry.author
    switch entry.entry.body {
    case .presence: registers.presence.remove(entry, under: author)
    case .hearing: registers.hearing.remove(entry, under: author)
    case .redemption: registers.redemption.remove(entry, under: author)
    case .grant(let grant):
      grants.remove(entry, under: Granting(author: author, subject: grant.subject))
    case .claim, .end: calls.remove(entry)
    case .message: messages.remove(entry)
    case .epoch: epochs.remove(entry)
    case .unknown: unknown.remove(entry)
    }
  }

  func all(_ kind: EntryBody.Kind) -> [SignedEntry] {
    switch kind {
    case .presence, .hearing, .redemption: registers[kind]?.entries ?? []
    case .grant: grants.entries.sorted()
    case .claim, .end: calls.entries.filter { $0.entry.body.kind == kind }
    case .message: messages.entries
    case .epoch: epochs.entries
    }
  }
}
