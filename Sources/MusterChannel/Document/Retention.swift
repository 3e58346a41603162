import MusterBase
import MusterWire

/// Which entries a document keeps: a function of the set of entries alone.
///
/// Of presences, hearings and redemptions, the newest for each author, and of the owner's grants
/// the newest for each subject; of these the newest so many. Of messages, call entries, grants of
/// others and unknown kinds, each author's newest so many, and of all those the newest so many.
/// "Newest of each, then newest of all" gives the same whether entries are left out early or at the
/// end: what is left out has so many newer ones before it that more entries can only add to them.
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
      guard table.count > limit else { return [] }
      var oldest = 0
      for index in 1..<table.count where table[at: index] < table[at: oldest] { oldest = index }
      let removed = table[at: oldest]
      table[table.keys[oldest]] = nil
      return removed == entry ? nil : [removed]
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
      let index = entries.firstPlace { $0 >= entry }
      if index < entries.count, entries[index] == entry { _ = take(at: index) }
    }

    private mutating func take(at index: Int) -> SignedEntry {
      let entry = entries.remove(at: index)
      let left = (counts[entry.entry.author] ?? 1) - 1
      counts[entry.entry.author] = left == 0 ? nil : left
      return entry
    }
  }

  /// Presences, hearings and redemptions, one of each for an author.
  struct PerAuthor: Sendable {
    var presence = Registers<NodeID>(limit: Limits.authors)
    var neighbourReport = Registers<NodeID>(limit: Limits.authors)
    var redemption = Registers<NodeID>(limit: Limits.authors)

    subscript(kind: EntryBody.Kind) -> Registers<NodeID>? {
      switch kind {
      case .presence: presence
      case .neighbourReport: neighbourReport
      case .redemption: redemption
      case .claim, .end, .message, .grant, .epoch: nil
      }
    }
  }

  /// The channel's owner: its grants and key changes are bounded by themselves, so that nobody can
  /// push them out. Nil in an open channel, where neither means anything.
  let owner: NodeID?
  private(set) var registers = PerAuthor()
  private var grants = Registers<NodeID>(limit: Limits.grants)
  private var grantsOfOthers = Log(
    limit: Limits.grants, limitPerAuthor: Limits.grantsPerAuthor)
  private var calls = Log(
    limit: Limits.callEntries, limitPerAuthor: Limits.callEntriesPerAuthor)
  private var messages = Log(limit: Limits.messages, limitPerAuthor: Limits.messagesPerAuthor)
  private var epochs = Log(limit: Limits.epochs, limitPerAuthor: Limits.epochs)
  private var unknown = Log(
    limit: Limits.unknownEntries, limitPerAuthor: Limits.unknownEntriesPerAuthor)

  init(owner: NodeID?) { self.owner = owner }

  /// What had to go for the entry; nil when the entry itself is not kept.
  mutating func insert(_ entry: SignedEntry, byArrival: Bool) -> [SignedEntry]? {
    let author = entry.entry.author
    switch entry.entry.body {
    case .presence:
      return registers.presence.insert(entry, under: author, byArrival: byArrival)
    case .neighbourReport:
      return registers.neighbourReport.insert(entry, under: author, byArrival: false)
    case .redemption: return registers.redemption.insert(entry, under: author, byArrival: false)
    case .grant(let grant):
      guard let owner else { return nil }
      guard author == owner else {
        // The channel's owner always has room above what other owners say.
        guard entry.entry.lamport <= Entry.lamportLimit / 2 else { return nil }
        return grantsOfOthers.insert(entry)
      }
      return grants.insert(entry, under: grant.subject, byArrival: false)
    case .claim, .end: return calls.insert(entry)
    case .message: return messages.insert(entry)
    case .epoch: return author == owner ? epochs.insert(entry) : nil
    case .unknown: return unknown.insert(entry)
    }
  }

  mutating func remove(_ entry: SignedEntry) {
    let author = entry.entry.author
    switch entry.entry.body {
    case .presence: registers.presence.remove(entry, under: author)
    case .neighbourReport: registers.neighbourReport.remove(entry, under: author)
    case .redemption: registers.redemption.remove(entry, under: author)
    case .grant(let grant):
      if author == owner {
        grants.remove(entry, under: grant.subject)
      } else {
        grantsOfOthers.remove(entry)
      }
    case .claim, .end: calls.remove(entry)
    case .message: messages.remove(entry)
    case .epoch: epochs.remove(entry)
    case .unknown: unknown.remove(entry)
    }
  }

  func all(_ kind: EntryBody.Kind) -> [SignedEntry] {
    switch kind {
    case .presence, .neighbourReport, .redemption: registers[kind]?.entries ?? []
    case .grant: (grants.entries + grantsOfOthers.entries).sorted()
    case .claim, .end: calls.entries.filter { $0.entry.body.kind == kind }
    case .message: messages.entries
    case .epoch: epochs.entries
    }
  }
}
