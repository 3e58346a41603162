import MusterBase
import MusterWire

/// A channel's document, and how it spreads over this node's links.
///
/// News is pushed at once to every neighbour that does not have it from its author anyway. Whatever
/// that misses is found by comparing documents with one random neighbour about every second, so
/// that it works over any connected graph of links.
public struct Gossip: Sendable {
  public enum Output: Equatable, Sendable {
    case send(Control, to: NodeID)
    /// An entry is new, and those removed made room for it.
    case inserted(SignedEntry, removed: [SignedEntry])
    /// An author has contradicted itself: nothing of it counts.
    case quarantined(NodeID, removed: [SignedEntry])
  }

  struct Neighbour: Sendable {
    var outbox = Outbox()
    /// Ids to acknowledge, at most `Control.idLimit`.
    var received: [UInt64] = []
    var acknowledgeAt: Instant?
    /// Entries that it may send: a check of a signature costs 34 µs.
    var entries = TokenBucket(capacity: 2000, perSecond: 1000)
    /// Entries of it that are pushed on at once; the rest spreads by comparison, so that nobody
    /// makes all others flood one another.
    var relayed = TokenBucket(capacity: 200, perSecond: 50)
    /// Bytes of comparisons with it, which a link of the field carries in seconds; what does
    /// not fit is compared another time.
    var answers = TokenBucket(capacity: 24_000, perSecond: 6_000)
    /// Entries that it may ask for.
    var requestBudget = TokenBucket(capacity: 1024, perSecond: 512)
    /// What it was asked for, and when; at most `askedLimit`.
    var asked = PeerTable<UInt64, Instant>()
  }

  /// An entry of an author that nobody here has heard of yet.
  struct Waiting: Sendable {
    var entry: SignedEntry
    var source: NodeID
  }

  /// What a newcomer learns of a full channel before it learns whose it is; of more, the oldest go,
  /// and come again when documents are compared.
  static let waitingLimit = 256

  /// How long acknowledgements wait for company.
  static let acknowledgeDelay = Duration.milliseconds(10)
  static let comparisonInterval = Duration.seconds(1)
  static let comparisonJitter = 0.2
  /// How long nobody else is asked for what one neighbour was asked for.
  static let askedElsewhereAfter = Duration.seconds(1)
  /// How long it is not asked itself again: who lists what it never sends must not keep others, who
  /// would send it, from being asked.
  static let askedAgainAfter = Duration.seconds(3)
  static let askedLimit = 512

  public internal(set) var document: Document
  public internal(set) var counters = GossipCounters()
  let channel: ChannelID
  let own: NodeID
  var neighbours = PeerTable<NodeID, Neighbour>()
  var waiting: [Waiting] = []
  var random: PRNG
  private var compareAt: Instant?

  package var flaw: MeshFlaw? {
    get { document.flaw }
    set { document.flaw = newValue }
  }

  public init(channel: ChannelID, own: NodeID, exempt: NodeID?, seed: UInt64) {
    self.channel = channel
    self.own = own
    document = Document(channel: channel, exempt: exempt)
    random = PRNG(seed: seed)
  }

  /// Takes in what was remembered, before there is any link.
  public mutating func restore(_ entries: [SignedEntry]) {
    for entry in entries { _ = document.insert(entry) }
  }

  /// Says something: an entry of this node's own.
  public mutating func broadcast(_ entry: SignedEntry, at now: Instant) -> [Output] {
    var out: [Output] = []
    take(entry, from: nil, at: now, &out)
    return out
  }

  /// A link to `peer` can be used: what this node is comes first, then documents are compared.
  public mutating func linkUp(_ peer: NodeID, at now: Instant) -> [Output] {
    var neighbour = Neighbour()
    for kind in [EntryBody.Kind.redemption, .presence] {
      if let entry = document.newest(kind, of: own) { neighbour.outbox.add(entry) }
    }
    neighbours[peer] = neighbour
    if compareAt == nil { compareAt = now + random.jittered(Self.comparisonInterval, by: 0.5) }
    var out: [Output] = []
    if let position = neighbours.index(of: peer) { flush(position, at: now, &out) }
    compare(with: peer, &out)
    return out
  }

  /// The link is gone: what was on its way to the neighbour is left to a later comparison.
  public mutating func linkDown(_ peer: NodeID) {
    neighbours[peer] = nil
    if neighbours.isEmpty { compareAt = nil }
  }

  /// Sends again what was lost, acknowledges, and compares; harmless before `deadline`.
  public mutating func tick(at now: Instant) -> [Output] {
    var out: [Output] = []
    flushAll(at: now, &out)
    if let due = compareAt, due <= now {
      compareAt =
        neighbours.isEmpty
        ? nil : now + random.jittered(Self.comparisonInterval, by: Self.comparisonJitter)
      if !neighbours.isEmpty {
        compare(with: neighbours.keys[random.below(neighbours.count)], &out)
      }
    }
    return out
  }

  public var deadline: Instant? {
    var next = neighbours.isEmpty ? nil : compareAt
    for position in 0..<neighbours.count {
      next = soonest(next, neighbours[at: position].outbox.deadline)
      next = soonest(next, neighbours[at: position].acknowledgeAt)
    }
    return next
  }

  /// Whether nobody is still to be told of an entry.
  public func isSettled(_ id: EntryID) -> Bool {
    !(0..<neighbours.count).contains { neighbours[at: $0].outbox.contains(id) }
  }

  // MARK: Sending

  mutating func compare(with peer: NodeID, _ out: inout [Output]) {
    counters.digestsSent &+= 1
    out.append(.send(.digest(document.digest), to: peer))
  }

  /// Takes an entry into the document and passes it on.
  mutating func take(
    _ entry: SignedEntry, from source: NodeID?, pushes: Bool = true, at now: Instant,
    _ out: inout [Output]
  ) {
    switch document.insert(entry) {
    case .inserted(let removed):
      counters.entriesTaken &+= 1
      out.append(.inserted(entry, removed: removed))
      if !removed.isEmpty { drop(where: removed.contains) }
      if pushes { push([entry], exceptTo: source) }
      flushAll(at: now, &out)
    case .quarantined(let author, let removed):
      out.append(.quarantined(author, removed: removed))
      drop { $0.entry.author == author }
      push(document.entry(Document.equivocationID(of: author).prefix), exceptTo: nil)
      flushAll(at: now, &out)
    case .known: counters.entriesRepeated &+= 1
    case .superseded: counters.entriesSuperseded &+= 1
    case .refused: counters.ofQuarantined &+= 1
    }
  }

  private mutating func drop(where isNeedless: (SignedEntry) -> Bool) {
    for position in 0..<neighbours.count { neighbours[at: position].outbox.drop(where: isNeedless) }
  }

  /// Puts the entries of one author, a new one or the two witnesses against it, in line for all who
  /// do not have them.
  private mutating func push(_ entries: [SignedEntry], exceptTo source: NodeID?) {
    guard let author = entries.first?.entry.author else { return }
    let reached = reached(by: author)
    for position in 0..<neighbours.count {
      let peer = neighbours.keys[position]
      guard peer != source, peer != author || entries.count > 1, !reached.contains(peer.key.prefix)
      else { continue }
      for entry in entries { neighbours[at: position].outbox.add(entry) }
    }
  }

  /// Whom the author, a neighbour itself, tells its news directly.
  private func reached(by author: NodeID) -> [UInt64] {
    guard author != own, neighbours.index(of: author) != nil,
      case .neighbourReport(let neighbourReport)? = document.newest(.neighbourReport, of: author)?
        .entry.body
    else { return [] }
    return neighbourReport.heard
  }

  private mutating func flushAll(at now: Instant, _ out: inout [Output]) {
    for position in 0..<neighbours.count { flush(position, at: now, &out) }
  }

  /// Sends one neighbour what is due.
  mutating func flush(_ position: Int, at now: Instant, _ out: inout [Output]) {
    let peer = neighbours.keys[position]
    if let due = neighbours[at: position].acknowledgeAt, due <= now {
      acknowledge(position, &out)
    }
    let entries = neighbours[at: position].outbox.due(at: now)
    counters.entriesSent &+= UInt64(entries.count)
    for entry in entries { out.append(.send(.entry(entry.bytes), to: peer)) }
    if neighbours[at: position].outbox.takeOverflow() { compare(with: peer, &out) }
  }

  private mutating func acknowledge(_ position: Int, _ out: inout [Output]) {
    let ids = neighbours[at: position].received
    neighbours[at: position].received = []
    neighbours[at: position].acknowledgeAt = nil
    if !ids.isEmpty { out.append(.send(.entriesReceived(ids), to: neighbours.keys[position])) }
  }

  mutating func noteReceived(
    _ id: UInt64, from position: Int, at now: Instant, _ out: inout [Output]
  ) {
    neighbours[at: position].received.append(id)
    if neighbours[at: position].received.count >= Control.idLimit {
      return acknowledge(position, &out)
    }
    if neighbours[at: position].acknowledgeAt == nil {
      neighbours[at: position].acknowledgeAt = now + Self.acknowledgeDelay
    }
  }
}
