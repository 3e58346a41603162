import MusterBase
import MusterWire

/// Decides which entries a document keeps, as a function of the set of entries and of the
/// principals of their authors.
///
/// Of presences, neighbour reports, redemptions and joinings, the newest of each author is kept; of
/// the owner's grants, the newest for each subject; of messages, call entries, moderations, grants
/// by others and unknown kinds, the newest up to a limit per author. Each of these kinds has a
/// limit in total, which principals share (`FairQuota`). These rules commute with insertion: a
/// dropped entry has enough newer ones ahead of it, and further entries can only increase their
/// number.
struct Retention: Sendable {
  /// The newest entry for each key: for each author, or for each subject of the owner's grants.
  struct Registers: Sendable {
    let limit: Int
    private var table = PeerTable<NodeID, SignedEntry>()
    private var quota: FairQuota

    init(limit: Int, isFair: Bool) {
      self.limit = limit
      quota = FairQuota(isFair: isFair)
    }

    subscript(key: NodeID) -> SignedEntry? { table[key] }
    var entries: [SignedEntry] { table.map(\.value) }

    /// Inserts an entry; returns the entries that it displaces, or nil if it is not kept.
    mutating func insert(
      _ entry: SignedEntry, under key: NodeID, of principal: NodeID, _ policy: ChannelPolicy
    ) -> [SignedEntry]? {
      if let known = table[key] {
        guard policy.replaces(known, entry) else { return nil }
        table[key] = entry
        move(key, to: principal)
        return [known]
      }
      table[key] = entry
      quota.add(key, of: principal)
      guard table.count > limit else { return [] }
      let oldest = quota.evictionCandidates.compactMap { key in
        table[key].map { (key: key, entry: $0) }
      }
      .min { $0.entry < $1.entry }
      guard let oldest else { return [] }
      remove(oldest.entry, under: oldest.key)
      return oldest.entry == entry ? nil : [oldest.entry]
    }

    mutating func remove(_ entry: SignedEntry, under key: NodeID) {
      guard table[key] == entry else { return }
      table[key] = nil
      quota.remove(key)
    }

    mutating func move(_ key: NodeID, to principal: NodeID) { quota.move(key, to: principal) }

    /// The violated invariants; `name` names the kind of entries.
    func checkInvariants(_ name: String) -> [String] {
      var faults: [String] = []
      if table.count > limit { faults.append("\(table.count) \(name) of \(limit) at most") }
      if quota.authors != table.keys { faults.append("other shares of \(name)") }
      return faults
    }
  }

  /// The newest entries, with a limit per author and a limit in total.
  struct Log: Sendable {
    let limit: Int
    let limitPerAuthor: Int
    /// The entries in document order.
    private(set) var entries: [SignedEntry] = []
    private var quota: FairQuota

    init(limit: Int, limitPerAuthor: Int, isFair: Bool) {
      self.limit = limit
      self.limitPerAuthor = limitPerAuthor
      quota = FairQuota(isFair: isFair)
    }

    /// Inserts an entry; returns the entries that it displaces, or nil if it is not kept.
    mutating func insert(_ entry: SignedEntry, of principal: NodeID) -> [SignedEntry]? {
      let author = entry.entry.author
      entries.insert(entry, at: entries.partitionIndex { $0 >= entry })
      quota.add(author, of: principal)
      var removed: [SignedEntry] = []
      if quota.count(of: author) > limitPerAuthor { removed += takeOldest(of: [author]) }
      if entries.count > limit { removed += takeOldest(of: quota.evictionCandidates) }
      return removed.contains(entry) ? nil : removed
    }

    mutating func remove(_ entry: SignedEntry) {
      let index = entries.partitionIndex { $0 >= entry }
      if index < entries.count, entries[index] == entry { _ = take(at: index) }
    }

    mutating func move(_ author: NodeID, to principal: NodeID) {
      quota.move(author, to: principal)
    }

    /// Removes the oldest entry of these authors, who are sorted by id.
    private mutating func takeOldest(of authors: [NodeID]) -> [SignedEntry] {
      let index = entries.firstIndex { entry in
        let position = authors.partitionIndex { $0 >= entry.entry.author }
        return position < authors.count && authors[position] == entry.entry.author
      }
      return index.map { [take(at: $0)] } ?? []
    }

    private mutating func take(at index: Int) -> SignedEntry {
      let entry = entries.remove(at: index)
      quota.remove(entry.entry.author)
      return entry
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
      for (author, count) in found where count > limitPerAuthor || quota.count(of: author) != count
      {
        faults.append("\(count) \(name) of one author, counted as \(quota.count(of: author))")
      }
      if found.keys != quota.authors { faults.append("authors of \(name) without any") }
      return faults
    }
  }

  /// The newest presence, neighbour report, redemption and joining of each author.
  struct PerAuthor: Sendable {
    var presence: Registers
    var neighbourReport: Registers
    var redemption: Registers
    var joining: Registers

    init(isFair: Bool) {
      presence = Registers(limit: Limits.authors, isFair: isFair)
      neighbourReport = presence
      redemption = presence
      joining = presence
    }

    subscript(kind: EntryBody.Kind) -> Registers? {
      switch kind {
      case .presence: presence
      case .neighbourReport: neighbourReport
      case .redemption: redemption
      case .joining: joining
      case .claim, .end, .moderation, .message, .grant, .epoch: nil
      }
    }
  }

  /// The channel's owner. The owner's grants and key changes have separate limits, so that other
  /// authors' entries cannot displace them. Nil in an open channel, which has no roles: neither
  /// grants nor key changes, and nobody who may moderate another.
  let owner: NodeID?
  private(set) var registers: PerAuthor
  private var grants: Registers
  private var grantsOfOthers: Log
  private var calls: Log
  private var moderations: Log
  private var messages: Log
  private var epochs: Log
  private var unknown: Log

  private let policy: ChannelPolicy

  init(owner: NodeID?, policy: ChannelPolicy) {
    self.owner = owner
    self.policy = policy
    let isFair = policy.dividesFairly
    func log(_ limit: Int, _ limitPerAuthor: Int) -> Log {
      Log(limit: limit, limitPerAuthor: limitPerAuthor, isFair: isFair)
    }
    registers = PerAuthor(isFair: isFair)
    grants = Registers(limit: Limits.grants, isFair: isFair)
    grantsOfOthers = log(Limits.grants, Limits.grantsPerAuthor)
    calls = log(Limits.callEntries, Limits.callEntriesPerAuthor)
    moderations = log(Limits.moderations, Limits.moderationsPerAuthor)
    messages = log(Limits.messages, Limits.messagesPerAuthor)
    epochs = log(Limits.epochs, Limits.epochs)
    unknown = log(Limits.unknownEntries, Limits.unknownEntriesPerAuthor)
  }

  /// The principal to whose share an entry counts, of whose author `principal` is the principal:
  /// what concerns an invite counts to those who come by it.
  func principal(of entry: SignedEntry, by principal: NodeID) -> NodeID {
    switch entry.entry.body {
    case .redemption(let redemption): redemption.oneTimeKey ?? principal
    case .grant(let grant) where entry.entry.author == owner: grant.invite ?? grant.subject
    default: principal
    }
  }

  /// Inserts an entry, of whose author `principal` is the principal; returns the entries that it
  /// displaces, or nil if it is not kept.
  mutating func insert(_ entry: SignedEntry, of principal: NodeID) -> [SignedEntry]? {
    let author = entry.entry.author
    let principal = self.principal(of: entry, by: principal)
    switch entry.entry.body {
    case .presence:
      return registers.presence.insert(entry, under: author, of: principal, policy)
    case .neighbourReport:
      return registers.neighbourReport.insert(entry, under: author, of: principal, policy)
    case .redemption:
      return registers.redemption.insert(entry, under: author, of: principal, policy)
    case .joining:
      return registers.joining.insert(entry, under: author, of: principal, policy)
    case .grant(let grant):
      guard let owner else { return nil }
      guard author == owner else {
        // Reserves the upper half of the Lamport counters for grants by the channel's owner.
        guard entry.entry.lamport <= Entry.lamportLimit / 2 else { return nil }
        return grantsOfOthers.insert(entry, of: principal)
      }
      return grants.insert(entry, under: grant.subject, of: principal, policy)
    case .claim, .end: return calls.insert(entry, of: principal)
    case .moderation: return owner == nil ? nil : moderations.insert(entry, of: principal)
    case .message: return messages.insert(entry, of: principal)
    case .epoch: return author == owner ? epochs.insert(entry, of: principal) : nil
    case .unknown: return unknown.insert(entry, of: principal)
    }
  }

  /// Counts the entries of an author to the share of another principal.
  mutating func move(_ author: NodeID, to principal: NodeID) {
    registers.presence.move(author, to: principal)
    registers.neighbourReport.move(author, to: principal)
    registers.joining.move(author, to: principal)
    grantsOfOthers.move(author, to: principal)
    calls.move(author, to: principal)
    moderations.move(author, to: principal)
    messages.move(author, to: principal)
    unknown.move(author, to: principal)
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
    case .moderation: moderations.remove(entry)
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
      + moderations.entries.count + messages.entries.count + epochs.entries.count
      + unknown.entries.count
  }

  /// The violated invariants: order, bounds and counts of the entries.
  func checkInvariants() -> [String] {
    var faults =
      grantsOfOthers.checkInvariants("grants") + calls.checkInvariants("call entries")
      + moderations.checkInvariants("moderations") + messages.checkInvariants("messages")
      + epochs.checkInvariants("key changes")
      + unknown.checkInvariants("unknown entries")
    for kind in [EntryBody.Kind.presence, .neighbourReport, .redemption, .joining] {
      faults += registers[kind]?.checkInvariants("entries of kind \(kind)") ?? []
      let isMisplaced = (registers[kind]?.entries ?? []).contains {
        $0.entry.body.kind != kind || registers[kind]?[$0.entry.author] != $0
      }
      if isMisplaced { faults.append("an entry of kind \(kind) under another author") }
    }
    faults += grants.checkInvariants("grants of the owner")
    return faults
  }

  /// The owner's grant for a key, if there is one, and those of other members.
  func grants(for subject: NodeID) -> [SignedEntry] {
    let others = grantsOfOthers.entries.filter {
      if case .grant(let grant) = $0.entry.body { grant.subject == subject } else { false }
    }
    return (grants[subject].map { [$0] } ?? []) + others
  }

  func all(_ kind: EntryBody.Kind) -> [SignedEntry] {
    switch kind {
    case .presence, .neighbourReport, .redemption, .joining: registers[kind]?.entries ?? []
    case .grant: (grants.entries + grantsOfOthers.entries).sorted()
    case .claim, .end: calls.entries.filter { $0.entry.body.kind == kind }
    case .moderation: moderations.entries
    case .message: messages.entries
    case .epoch: epochs.entries
    }
  }
}
