import MusterBase
import MusterWire

/// A channel's document, and how it spreads over this node's links.
///
/// News is pushed at once to every neighbour that does not have it from its author anyway. Whatever
/// that misses is found by comparing documents with one random neighbour about every second, so that
/// it works over any connected graph of links.
public struct Gossip: Sendable {
  public enum Output: Equatable, Sendable {
    case send(Control, to: NodeID)
    /// An entry is new, and those removed made room for it.
    case inserted(SignedEntry, removed: [SignedEntry])
    /// An author has contradicted itself: nothing of it counts.
    case fenced(NodeID, removed: [SignedEntry])
  }

  struct Neighbour: Sendable {
    var outbox = Outbox()
    /// Ids to acknowledge, at most `Control.idLimit`.
    var received: [UInt64] = []
    var acknowledgeAt: Instant?
    /// Entries that it may send: a check of a signature costs 34 µs.
    var entries = TokenBucket(capacity: 2000, perSecond: 1000)
    /// Entries of it that are pushed on at once; the rest spreads by comparison, so that nobody makes
    /// all others flood one another.
    var relayed = TokenBucket(capacity: 200, perSecond: 50)
    /// Comparisons and wishes that are answered.
    var answers = TokenBucket(capacity: 40, perSecond: 40)
  }

  /// How long acknowledgements wait for company.
  static let acknowledgeDelay = Duration.milliseconds(10)
  static let comparisonInterval = Duration.seconds(1)
  static let comparisonJitter = 0.2
  /// How long an entry that one neighbour was asked for is not asked for again.
  static let askedFor = Duration.seconds(1)
  static let askedLimit = 512
  /// How much higher than all known ones the Lamport counter of an entry may be.
  static let lamportLead: UInt64 = 1 << 32

  public internal(set) var document: Document
  public internal(set) var counters = GossipCounters()
  let channel: ChannelID
  let own: NodeID
  var neighbours = PeerTable<NodeID, Neighbour>()
  /// Entries asked for lately, at most `askedLimit`.
  var asked: [(id: UInt64, until: Instant)] = []
  private var random: PRNG
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
  public mutating func publish(_ entry: SignedEntry, at now: Instant) -> [Output] {
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
    flush(peer, at: now, &out)
    compare(with: peer, &out)
    return out
  }

  public mutating func linkDown(_ peer: NodeID) { neighbours[peer] = nil }

  /// Sends again what was lost, acknowledges, and compares; harmless before `deadline`.
  public mutating func tick(at now: Instant) -> [Output] {
    var out: [Output] = []
    for peer in neighbours.keys { flush(peer, at: now, &out) }
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
    for place in 0..<neighbours.count {
      next = soonest(next, neighbours[at: place].outbox.deadline)
      next = soonest(next, neighbours[at: place].acknowledgeAt)
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
      for place in 0..<neighbours.count { neighbours[at: place].outbox.drop(removed) }
      if pushes { push([entry], exceptTo: source, at: now, &out) }
    case .fenced(let author, let removed):
      out.append(.fenced(author, removed: removed))
      for place in 0..<neighbours.count { neighbours[at: place].outbox.drop(removed) }
      guard let witnesses = witnesses(of: author) else { return }
      push(witnesses, exceptTo: nil, at: now, &out)
    case .known: counters.entriesRepeated &+= 1
    case .superseded: counters.entriesSuperseded &+= 1
    case .refused: counters.ofFenced &+= 1
    }
  }

  private func witnesses(of author: NodeID) -> [SignedEntry]? {
    let id = SignedEntry.id(of: Array("muster/1 fence".utf8) + author.key.bytes)
    let entries = document.entry(id.prefix)
    return entries.isEmpty ? nil : entries
  }

  private mutating func push(
    _ entries: [SignedEntry], exceptTo source: NodeID?, at now: Instant, _ out: inout [Output]
  ) {
    guard let author = entries.first?.entry.author else { return }
    let reached = reached(by: author)
    for place in 0..<neighbours.count {
      let peer = neighbours.keys[place]
      guard peer != source, peer != author || entries.count > 1, !reached.contains(peer.key.prefix)
      else { continue }
      for entry in entries { neighbours[at: place].outbox.add(entry) }
      flush(peer, at: now, &out)
    }
  }

  /// Whom the author, a neighbour itself, tells its news directly.
  private func reached(by author: NodeID) -> [UInt64] {
    guard author != own, neighbours.index(of: author) != nil,
      case .hearing(let hearing)? = document.newest(.hearing, of: author)?.entry.body
    else { return [] }
    return hearing.heard
  }

  /// Sends one neighbour what is due.
  mutating func flush(_ peer: NodeID, at now: Instant, _ out: inout [Output]) {
    guard let place = neighbours.index(of: peer) else { return }
    if let due = neighbours[at: place].acknowledgeAt, due <= now {
      acknowledge(place, &out)
    }
    let entries = neighbours[at: place].outbox.due(at: now)
    counters.entriesSent &+= UInt64(entries.count)
    for entry in entries { out.append(.send(.entry(entry.bytes), to: peer)) }
    if neighbours[at: place].outbox.takeOverflow() { compare(with: peer, &out) }
  }

  private mutating func acknowledge(_ place: Int, _ out: inout [Output]) {
    let ids = neighbours[at: place].received
    neighbours[at: place].received = []
    neighbours[at: place].acknowledgeAt = nil
    if !ids.isEmpty { out.append(.send(.entriesReceived(ids), to: neighbours.keys[place])) }
  }

  mutating func noteReceived(
    _ id: UInt64, from place: Int, at now: Instant, _ out: inout [Output]
  ) {
    neighbours[at: place].received.append(id)
    if neighbours[at: place].received.count >= Control.idLimit { return acknowledge(place, &out) }
    if neighbours[at: place].acknowledgeAt == nil {
      neighbours[at: place].acknowledgeAt = now + Self.acknowledgeDelay
    }
  }
}
