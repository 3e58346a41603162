import MusterBase

/// The announcements that this node has challenged, and the rate limits for challenges.
///
/// Anyone can record an announcement and replay it from any address, including a victim's. So one
/// announcement causes at most one challenge per source address, the challenge is smaller than the
/// announcement (no amplification), and there is a rate limit per author and one per node.
struct ChallengeLedger: Sendable {
  /// The maximum number of recently challenged authors; the least recently challenged is evicted.
  static let capacity = 256
  /// The maximum number of tracked runs of one author.
  static let bootsPerAuthor = 32
  /// The maximum number of source addresses challenged about one announcement: two address families
  /// on two interfaces.
  static let sourcesPerAnnouncement = 4

  /// The rate limit of the node: one challenge for every peer of a full channel at once, then 32
  /// per second. At 105 bytes each this is 27 kbit/s, too little for an attack, and enough for a
  /// full channel within two seconds.
  private var total = TokenBucket(capacity: 64, perSecond: 32)
  private var authors = PeerTable<SessionLinkID, Author>()

  /// The rate limits for verifying signatures, at some 100 us each: one for authors that are proven
  /// or have answered a challenge, one for all others, whose announcements anyone can record and
  /// send from any source address.
  private var knownSignatures = TokenBucket(capacity: 256, perSecond: 128)
  private var otherSignatures = TokenBucket(capacity: 128, perSecond: 64)

  enum Verdict: Equatable {
    case ask
    case alreadyAsked
    case overBudget
  }

  private struct Author: Sendable {
    /// The rate limit of the author: a run's first announcements over two address families and
    /// interfaces, then two per second.
    var budget = TokenBucket(capacity: 6, perSecond: 2)
    var boots: [Boot] = []
    var askedAt: Instant
  }

  private struct Boot: Sendable {
    var bootID: UInt64
    var counter: UInt64
    var sources: [Address]
    /// The rate limit of the run: a run that never answers, because its announcements are replays,
    /// is soon challenged only every 10 s, which leaves the author's budget to the live run.
    var budget = TokenBucket(capacity: 6, perSecond: 0.1)
  }

  /// Whether a signature may be verified now; if so, charges it.
  mutating func mayVerify(ofKnown isKnown: Bool, at now: Instant) -> Bool {
    isKnown ? knownSignatures.take(at: now) : otherSignatures.take(at: now)
  }

  /// The verdict of `judge` if the announcement is genuine, without recording it: whether the
  /// signature is worth verifying.
  func forecast(
    _ author: SessionLinkID, bootID: UInt64, counter: UInt64, from source: Address, at now: Instant
  ) -> Verdict {
    guard let entry = authors[author] else { return total.has(at: now) ? .ask : .overBudget }
    if Self.isAsked(entry, bootID: bootID, counter: counter, source: source) {
      return .alreadyAsked
    }
    let run = entry.boots.first { $0.bootID == bootID }
    let isAllowed =
      (run?.budget.has(at: now) ?? true) && entry.budget.has(at: now) && total.has(at: now)
    return isAllowed ? .ask : .overBudget
  }

  /// Decides whether to challenge an unproven announcement from `source`; if the verdict is `ask`,
  /// also records the challenge.
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

  /// The authors under a key that were last challenged at this time or later.
  func asked(under key: KeyID, since: Instant) -> [NodeID] {
    authors.filter { $0.key.key == key && $0.value.askedAt >= since }.map(\.key.peer)
  }

  /// Records that the author answered, which proves the run live, and restores its budget.
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
