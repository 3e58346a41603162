import MusterBase

/// Whom this node has asked to prove itself, and whether it may ask once more.
///
/// Anyone who recorded an announce can send it again from any address, a victim's too. So one
/// announce brings at most one challenge to one address, the challenge is smaller than the
/// announce, and both the author and the whole node have a budget.
struct ChallengeLedger: Sendable {
  /// Authors asked about lately; the one asked longest ago is forgotten first.
  static let capacity = 256
  /// Boots of one author told apart.
  static let bootsPerAuthor = 32
  /// Addresses asked about one announce: two families on two interfaces.
  static let sourcesPerAnnouncement = 4

  /// One challenge for each peer that a full channel may bring at once, then 32 a second: 105 bytes
  /// each, 27 kbit/s, too little to harm anyone and enough for a whole channel within two seconds.
  private var total = TokenBucket(capacity: 64, perSecond: 32)
  private var authors = PeerTable<SessionLinkID, Author>()

  enum Verdict: Equatable {
    case ask
    case alreadyAsked
    case overBudget
  }

  private struct Author: Sendable {
    /// The first announces of a boot over two families and interfaces, then two a second.
    var budget = TokenBucket(capacity: 6, perSecond: 2)
    var boots: [Boot] = []
    var askedAt: Instant
  }

  private struct Boot: Sendable {
    var bootID: UInt64
    var counter: UInt64
    var sources: [Address]
    /// A boot that never answers, as recorded ones do not, is asked ever less, and leaves its
    /// author's budget to the one that lives.
    var budget = TokenBucket(capacity: 6, perSecond: 0.1)
  }

  /// Whether an unproven announce from `source` may be challenged; `ask` counts as done.
  mutating func judge(
    _ author: SessionLinkID, bootID: UInt64, counter: UInt64, from source: Address, at now: Instant
  ) -> Verdict {
    var entry = authors[author] ?? Author(askedAt: now)
    if Self.isAsked(entry, bootID: bootID, counter: counter, source: source) {
      return .alreadyAsked
    }
    var boot =
      entry.boots.first { $0.bootID == bootID }
      ?? Boot(bootID: bootID, counter: counter, sources: [])
    let isAllowed =
      boot.budget.take(at: now) && entry.budget.take(at: now) && total.take(at: now)
    guard isAllowed else {
      if authors.index(of: author) != nil { authors[author] = entry }
      return .overBudget
    }
    Self.note(boot, &entry, counter: counter, source: source)
    entry.askedAt = now
    if authors.index(of: author) == nil, authors.count >= Self.capacity { forgetOldest() }
    authors[author] = entry
    return .ask
  }

  /// The author answered: this boot lives, wherever it goes next.
  mutating func answered(_ author: SessionLinkID, bootID: UInt64) {
    _ = authors.update(author) { entry in
      guard let position = entry.boots.firstIndex(where: { $0.bootID == bootID }) else { return }
      entry.boots[position].budget = Boot(bootID: bootID, counter: 0, sources: []).budget
    }
  }

  mutating func forget(_ key: KeyID) {
    for author in authors.keys where author.key == key { authors[author] = nil }
  }

  private static func isAsked(
    _ entry: Author, bootID: UInt64, counter: UInt64, source: Address
  ) -> Bool {
    guard let boot = entry.boots.first(where: { $0.bootID == bootID }) else { return false }
    if counter != boot.counter { return counter < boot.counter }
    return boot.sources.contains(source) || boot.sources.count >= sourcesPerAnnouncement
  }

  private static func note(
    _ asked: Boot, _ entry: inout Author, counter: UInt64, source: Address
  ) {
    var boot = asked
    if boot.counter != counter { (boot.counter, boot.sources) = (counter, []) }
    boot.sources.append(source)
    entry.boots.removeAll { $0.bootID == boot.bootID }
    entry.boots.append(boot)
    if entry.boots.count > bootsPerAuthor { entry.boots.removeFirst() }
  }

  private mutating func forgetOldest() {
    let oldest = authors.min { $0.value.askedAt < $1.value.askedAt }
    if let oldest { authors[oldest.key] = nil }
  }
}
