import MusterBase
import MusterWire

/// Decides which entries a document keeps, as a function of the set of entries alone.
///
/// Of presences, neighbour reports, redemptions and joinings, the newest of each author is kept; of
/// the owner's grants, the newest for each subject. Each of these kinds has a limit, beyond which
/// the oldest entries are dropped. Of messages, call entries, grants by others and unknown kinds,
/// the newest are kept, up to a limit per author and a limit in total. Both rules commute with
/// insertion: a dropped entry has enough newer ones ahead of it, and further entries can only
/// increase their number.
struct Retention: Sendable {
  /// The newest entry for each key.
  struct Registers<Key: Comparable & Sendable>: Sendable {
    let limit: Int
    private var table = PeerTable<Key, SignedEntry>()

    init(limit: Int) { self.limit = limit }

    subscript(key: Key) -> SignedEntry? { table[key] }
    var entries: [SignedEntry] { table.map(\.value) }

    /// Inserts an entry; returns the entries that it displaces, or nil if it is not kept.
    mutating func insert(
      _ entry: SignedEntry, under key: Key, _ policy: ChannelPolicy
    ) -> [SignedEntry]? {
      if let known = table[key] {
        guard policy.replaces(known, entry) else { return nil }
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

  /// The newest entries, with a limit per author and a limit in total.
  struct Log: Sendable {
    let limit: Int
    let limitPerAuthor: Int
    /// The entries in document order.
    private(set) var entries: [SignedEntry] = []
    private var counts = PeerTable<NodeID, Int>()

    init(limit: Int, limitPerAuthor: Int) {
      self.limit = limit
      self.limitPerAuthor = limitPerAuthor
    }

    mutating func insert(_ entry: SignedEntry) -> [SignedEntry]? {
      let author = entry.entry.author
      entries.insert(entry, at: entries.partitionIndex { $0 >= entry })
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
      let index = entries.partitionIndex { $0 >= entry }
      if index < entries.count, entries[index] == entry { _ = take(at: index) }
    }

    /// The violated invariants; `name` names the kind of entries.
    func checkInvariants(_ name: String) -> [String] {
      var faults: [String] = []
      var found = PeerTable<NodeID, Int>()
      for (index, entry) in entries.enumerated() {
        if index > 0, !(entries[index - 1] < entry) { faults.append("\(name) are out of order") }
        found[entry.entry.author] = (found[entry.entry.author] ?? 0) + 1
      }
      if entries.count > limit { faults.append("\(entries.count) \(name) of \(limit) at most") }
      for (author, count) in found where count > limitPerAuthor || counts[author] != count {
        faults.append("\(count) \(name) of one author, counted as \(counts[author] ?? 0)")
      }
      if found.count != counts.count { faults.append("authors of \(name) without any") }
      return faults
    }

    private mutating func take(at index: Int) -> SignedEntry {
      let entry = entries.remove(at: index)
      let left = (counts[entry.entry.author] ?? 1) - 1
      counts[entry.entry.author] = left == 0 ? nil : left
      return entry
    }
  }

  /// The newest presence, neighbour report, redemption and joining of each author.
  struct PerAuthor: Sendable {
    var presence = Registers<NodeID>(limit: Limits.authors)
    var neighbourReport = Registers<NodeID>(limit: Limits.authors)
    var redemption = Registers<NodeID>(limit: Limits.authors)
    var joining = Registers<NodeID>(limit: Limits.authors)

    subscript(kind: EntryBody.Kind) -> Registers<NodeID>? {
      switch kind {
      case .presence: presence
      case .neighbourReport: neighbourReport
      case .redemption: redemption
      case .joining: joining
      case .claim, .end, .message, .grant, .epoch: nil
      }
    }
  }

  /// The channel's owner. The owner's grants and key changes have separate limits, so that other
  /// authors' entries cannot displace them. Nil in an open channel, which has neither grants nor
  /// key changes.
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

  private let policy: ChannelPolicy

  init(owner: NodeID?, policy: ChannelPolicy) {
    self.owner = owner
    self.policy = policy
  }

  /// Inserts an entry; returns the entries that it displaces, or nil if it is not kept.
  mutating func insert(_ entry: SignedEntry) -> [SignedEntry]? {
    let author = entry.entry.author
    switch entry.entry.body {
    case .presence:
      return registers.presence.insert(entry, under: author, policy)
    case .neighbourReport:
      return registers.neighbourReport.insert(entry, under: author, policy)
    case .redemption: return registers.redemption.insert(entry, under: author, policy)
    case .joining: return registers.joining.insert(entry, under: author, policy)
    case .grant(let grant):
      guard let owner else { return nil }
      guard author == owner else {
        // Reserves the upper half of the Lamport counters for grants by the channel's owner.
        guard entry.entry.lamport <= Entry.lamportLimit / 2 else { return nil }
        return grantsOfOthers.insert(entry)
      }
      return grants.insert(entry, under: grant.subject, policy)
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
    case .joining: registers.joining.remove(entry, under: author)
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

  /// The number of entries kept.
  var count: Int {
    registers.presence.entries.count + registers.neighbourReport.entries.count
      + registers.redemption.entries.count + registers.joining.entries.count
      + grants.entries.count + grantsOfOthers.entries.count + calls.entries.count
      + messages.entries.count + epochs.entries.count + unknown.entries.count
  }

  /// The violated invariants: order, bounds and counts of the entries.
  func checkInvariants() -> [String] {
    var faults =
      grantsOfOthers.checkInvariants("grants") + calls.checkInvariants("call entries")
      + messages.checkInvariants("messages") + epochs.checkInvariants("key changes")
      + unknown.checkInvariants("unknown entries")
    for kind in [EntryBody.Kind.presence, .neighbourReport, .redemption, .joining] {
      let entries = registers[kind]?.entries ?? []
      if entries.count > Limits.authors { faults.append("too many entries of kind \(kind)") }
      let isMisplaced = entries.contains {
        $0.entry.body.kind != kind || registers[kind]?[$0.entry.author] != $0
      }
      if isMisplaced { faults.append("an entry of kind \(kind) under another author") }
    }
    if grants.entries.count > Limits.grants { faults.append("too many grants of the owner") }
    return faults
  }

  func all(_ kind: EntryBody.Kind) -> [SignedEntry] {
    switch kind {
    case .presence, .neighbourReport, .redemption, .joining: registers[kind]?.entries ?? []
    case .grant: (grants.entries + grantsOfOthers.entries).sorted()
    case .claim, .end: calls.entries.filter { $0.entry.body.kind == kind }
    case .message: messages.entries
    case .epoch: epochs.entries
    }
  }
}
