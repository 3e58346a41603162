import MusterBase
import MusterWire

/// Replicates a channel's document over this node's links.
///
/// New entries are pushed at once to every neighbour that does not get them from their author.
/// Anti-entropy repairs lost pushes: about once a second, this node compares its document with that
/// of a random neighbour. Together, push and anti-entropy (Demers et al., PODC 1987) work over any
/// connected graph of links.
public struct Gossip: Sendable {
  /// The messages to send and the changes of the document, in the order in which the host must
  /// apply them.
  public enum Output: Equatable, Sendable {
    /// Send a control message to a neighbour, over its link in this channel.
    case send(Control, to: NodeID)
    /// A new entry is in the document; the removed entries made room for it.
    case inserted(SignedEntry, removed: [SignedEntry])
    /// An author has signed two entries under one sequence number; all its entries are removed.
    case quarantined(NodeID, removed: [SignedEntry])
    /// A new entry has arrived that the document does not keep.
    case superseded(SignedEntry)
  }

  struct Neighbour: Sendable {
    var outbox = Outbox()
    /// The digest that was last sent to this neighbour.
    var sentDigest: DocumentDigest?
    /// The ids to acknowledge, at most `Control.idLimit`.
    var received: [UInt64] = []
    var acknowledgeAt: Instant?
    /// The budget for entries from this neighbour; verifying a signature costs 34 µs.
    var entries = TokenBucket(capacity: 2000, perSecond: 1000)
    /// The budget for entries from this neighbour that are forwarded at once; other entries spread
    /// by anti-entropy. This limit keeps one member from making all members flood one another.
    var relayed = TokenBucket(capacity: 200, perSecond: 50)
    /// The budget for anti-entropy with this neighbour, in bytes. Even a slow link carries this
    /// much within seconds; ranges beyond it wait for a later round.
    var answers = TokenBucket(capacity: 24_000, perSecond: 6_000)
    /// The budget for entries that this neighbour lacks or wants, in bytes.
    var delivery = TokenBucket(
      capacity: Gossip.deliveryCapacity, perSecond: Gossip.deliveryRate)
    /// The entries requested from this neighbour, with the request times; at most `askedLimit`.
    var asked = PeerTable<UInt64, Instant>()
  }

  /// An entry that the rights do not admit yet.
  struct Waiting: Sendable {
    var entry: SignedEntry
    var source: NodeID
  }

  /// The bytes per second, and at once, of the entries that a neighbour lacks or wants: some
  /// hundreds of short messages a second. Every member can ask for the whole document again and
  /// again.
  static let deliveryRate = 128_000.0
  static let deliveryCapacity = 256_000.0
  /// The lowest rate that `limitDeliveries` sets, in bytes per second: a few messages.
  static let slowestDelivery = 2_000.0
  /// What neighbours get at once in a call, in bytes: the roster of some tens of members to the
  /// first that asks, and a few entries to each.
  static let callCapacity = 32_000.0
  static let ownCallCapacity = 4_000.0

  /// The maximum number of waiting entries: a newcomer to a full channel may receive this many
  /// before their authors' grants. Entries beyond this number are dropped and arrive again by
  /// anti-entropy.
  static let waitingLimit = 256

  /// The delay of an acknowledgement, which combines several in one message.
  static let acknowledgeDelay = Duration.milliseconds(10)
  static let comparisonInterval = Duration.seconds(1)
  /// The first anti-entropy interval, which doubles until this document equals that of a neighbour:
  /// a newcomer waits for that before it starts a call.
  static let firstComparisonInterval = Duration.milliseconds(20)
  static let comparisonJitter = 0.2
  /// The pause before an entry requested from one neighbour is requested from another.
  static let askedElsewhereAfter = Duration.seconds(1)
  /// The pause before an entry is requested from the same neighbour again. It exceeds
  /// `askedElsewhereAfter`: a neighbour that lists entries but never sends them must not prevent
  /// requests to other neighbours.
  static let askedAgainAfter = Duration.seconds(3)
  static let askedLimit = 512

  /// The channel's document as received so far.
  public internal(set) var document: Document
  /// The totals since this process joined the channel.
  public internal(set) var counters = GossipCounters()
  let channel: ChannelID
  let own: NodeID
  var neighbours = PeerTable<NodeID, Neighbour>()
  var waiting: [Waiting] = []
  var random: PRNG
  /// The first time at which this document was equal to that of a neighbour, so that this node knew
  /// what a neighbour knew; nil before.
  public internal(set) var comparedAt: Instant?
  /// The budget for what neighbours want beyond their own, first come, first served; nil for none.
  private(set) var sharedDelivery: TokenBucket?
  private var compareAt: Instant?
  private var firstInterval = Gossip.firstComparisonInterval

  /// `own` is this node; `exempt`, the owner of a created channel, is never quarantined. `seed`
  /// only randomises the times of anti-entropy and the choice of neighbours.
  public init(channel: ChannelID, own: NodeID, exempt: NodeID?, seed: UInt64) {
    self.init(channel: channel, own: own, exempt: exempt, seed: seed, policy: .standard)
  }

  package init(
    channel: ChannelID, own: NodeID, exempt: NodeID?, seed: UInt64, policy: ChannelPolicy
  ) {
    self.channel = channel
    self.own = own
    document = Document(channel: channel, exempt: exempt, policy: policy)
    random = PRNG(seed: seed)
  }

  /// Restores entries that an earlier process stored; to be called before the first link.
  public mutating func restore(_ entries: [SignedEntry]) {
    for entry in entries { _ = document.insert(entry) }
  }

  /// Restores entries that the rights do not admit, because the grants for their authors are lost.
  /// They wait for `reconsider` as if they had just arrived: other nodes do not admit them either.
  mutating func restoreWaiting(_ entries: [SignedEntry]) {
    let kept = entries.filter { $0.entry.body.kind != .redemption }
    waiting = kept.suffix(Self.waitingLimit).map { Waiting(entry: $0, source: own) }
  }

  /// Removes the entries for which `holds` is false from the document; see `Document.settle`.
  package mutating func settle(
    _ admissions: PeerTable<NodeID, Admission>, changed: [NodeID]? = nil,
    holds: (SignedEntry) -> Bool
  ) -> [SignedEntry] {
    let before = document.revision
    let removed = document.settle(admissions, changed: changed, holds: holds)
    if document.revision != before { drop { !holds($0) } }
    return removed
  }

  /// Inserts an entry of this node and pushes it to all neighbours.
  public mutating func broadcast(_ entry: SignedEntry, at now: Instant) -> [Output] {
    var out: [Output] = []
    take(entry, from: nil, at: now, &out)
    return out
  }

  /// Queues another member's entry for all neighbours but its author, also for those to which the
  /// author pushes it: it arrives before the entry of this node that results from it.
  mutating func passOn(_ entry: SignedEntry) {
    for position in 0..<neighbours.count where neighbours.keys[position] != entry.entry.author {
      neighbours[at: position].outbox.add(entry)
    }
  }

  /// Handles a usable link to `peer`: sends the active call's `claim`, this node's joining and
  /// presence, in this order, then compares the documents.
  public mutating func linkUp(
    _ peer: NodeID, first claim: SignedEntry? = nil, at now: Instant
  ) -> [Output] {
    var neighbour = Neighbour()
    let entries = [
      claim, document.newest(.joining, of: own), document.newest(.presence, of: own),
    ]
    for entry in entries.compactMap({ $0 }) { neighbour.outbox.add(entry) }
    neighbours[peer] = neighbour
    if comparedAt == nil {
      firstInterval = Self.firstComparisonInterval
      compareAt = soonest(compareAt, now + firstInterval)
    } else if compareAt == nil {
      compareAt = now + random.jittered(Self.comparisonInterval, by: 0.5)
    }
    var out: [Output] = []
    if let position = neighbours.index(of: peer) { flush(position, at: now, &out) }
    compare(with: peer, &out)
    return out
  }

  /// Handles the loss of a link; anti-entropy repairs the loss of entries in flight.
  public mutating func linkDown(_ peer: NodeID) {
    neighbours[peer] = nil
    if neighbours.isEmpty { compareAt = nil }
  }

  /// Limits the entries that neighbours lack or want to so many bytes per second for all of them
  /// together; nil for no limit but each neighbour's own.
  ///
  /// Half of it is divided equally, so that those who ask for the document again and again leave
  /// something to a member that has returned and lacks what was written meanwhile.
  public mutating func limitDeliveries(toBytesPerSecond rate: Double?, at now: Instant) {
    var own = (capacity: Self.deliveryCapacity, rate: Self.deliveryRate)
    if let half = rate.map({ min(max($0, Self.slowestDelivery), Self.deliveryRate) / 2 }) {
      let capacity = max(half, Self.callCapacity)
      var shared = sharedDelivery ?? TokenBucket(capacity: capacity, perSecond: half)
      shared.set(capacity: capacity, perSecond: half, at: now)
      sharedDelivery = shared
      let share = half / Double(max(neighbours.count, 1))
      own = (max(share, Self.ownCallCapacity), share)
    } else {
      sharedDelivery = nil
    }
    for position in 0..<neighbours.count {
      neighbours[at: position].delivery.set(
        capacity: own.capacity, perSecond: own.rate, at: now)
    }
  }

  /// Charges an entry that a neighbour lacks or wants to the budgets; returns false if they are
  /// exhausted.
  mutating func mayDeliver(_ entry: SignedEntry, to position: Int, at now: Instant) -> Bool {
    let size = Double(entry.bytes.count)
    let may =
      neighbours[at: position].delivery.take(size, at: now)
      || sharedDelivery?.take(size, at: now) ?? false
    if !may { counters.overBudget &+= 1 }
    return may
  }

  /// Whether the budgets may have room for an entry, of which the signature alone takes 64 bytes.
  mutating func mayDeliverAny(to position: Int, at now: Instant) -> Bool {
    let size = Double(Entry.signatureBytes)
    let may =
      neighbours[at: position].delivery.has(size, at: now)
      || sharedDelivery?.has(size, at: now) ?? false
    if !may { counters.overBudget &+= 1 }
    return may
  }

  /// Retransmits entries, acknowledges them and runs anti-entropy when due; has no effect before
  /// `deadline`.
  public mutating func tick(at now: Instant) -> [Output] {
    var out: [Output] = []
    flushAll(at: now, &out)
    if let due = compareAt, due <= now {
      compareAt = neighbours.isEmpty ? nil : now + nextInterval()
      if !neighbours.isEmpty {
        compare(with: neighbours.keys[random.below(neighbours.count)], &out)
      }
    }
    return out
  }

  /// The time at which `tick` is next due, for anti-entropy, an acknowledgement or a
  /// retransmission; nil without neighbours.
  public var deadline: Instant? {
    var next = neighbours.isEmpty ? nil : compareAt
    for position in 0..<neighbours.count {
      next = soonest(next, neighbours[at: position].outbox.deadline)
      next = soonest(next, neighbours[at: position].acknowledgeAt)
    }
    return next
  }

  /// Whether the entry has left every outbox: each neighbour has acknowledged it, or it was dropped
  /// as obsolete or after `Outbox.attempts` transmissions.
  public func isFlushed(_ id: EntryID) -> Bool {
    !(0..<neighbours.count).contains { neighbours[at: $0].outbox.contains(id) }
  }

  private mutating func nextInterval() -> Duration {
    guard comparedAt == nil, firstInterval < Self.comparisonInterval else {
      return random.jittered(Self.comparisonInterval, by: Self.comparisonJitter)
    }
    firstInterval = firstInterval + firstInterval
    return firstInterval
  }

  // MARK: Sending

  mutating func compare(with peer: NodeID, _ out: inout [Output]) {
    if let position = neighbours.index(of: peer) {
      neighbours[at: position].sentDigest = document.digest
    }
    counters.digestsSent &+= 1
    out.append(.send(.digest(document.digest), to: peer))
  }

  /// Inserts an entry into the document. A new entry is queued for the neighbours that may lack it,
  /// except `source`, unless `pushes` is false.
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
      drop { $0.entry.author == author && $0.entry.body.kind != .redemption }
      push(document.entry(Document.equivocationID(of: author).prefix), exceptTo: nil)
      flushAll(at: now, &out)
    case .known: counters.entriesRepeated &+= 1
    case .superseded:
      counters.entriesSuperseded &+= 1
      out.append(.superseded(entry))
    case .refused: counters.ofQuarantined &+= 1
    }
  }

  private mutating func drop(where isNeedless: (SignedEntry) -> Bool) {
    for position in 0..<neighbours.count { neighbours[at: position].outbox.drop(where: isNeedless) }
  }

  /// Queues entries of one author (a new entry, or the two proofs of its equivocation) for all
  /// neighbours that may lack them.
  private mutating func push(_ entries: [SignedEntry], exceptTo source: NodeID?) {
    guard let author = entries.first?.entry.author else { return }
    let reached = reached(by: author)
    for position in 0..<neighbours.count {
      let peer = neighbours.keys[position]
      guard peer != source, peer != author || entries.count > 1, !reached.contains(peer.key.prefix)
      else { continue }
      for entry in entries {
        neighbours[at: position].outbox.add(entry, isOwn: author == own)
      }
    }
  }

  /// The id prefixes of the nodes to which an author, if it is a neighbour, pushes entries
  /// directly.
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

  /// Sends one neighbour its acknowledgements and due entries.
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

extension Gossip {
  /// The violated invariants of this state (for tests); empty if all hold.
  func checkInvariants() -> [String] {
    var faults: [String] = []
    if waiting.count > Self.waitingLimit { faults.append("\(waiting.count) entries wait") }
    if neighbours.isEmpty != (compareAt == nil) { faults.append("comparisons without neighbours") }
    if neighbours.index(of: own) != nil { faults.append("this node is its own neighbour") }
    for position in 0..<neighbours.count { faults += neighbours[at: position].checkInvariants() }
    return faults
  }
}

extension Gossip.Neighbour {
  fileprivate func checkInvariants() -> [String] {
    var faults = outbox.checkInvariants()
    if received.count > Control.idLimit { faults.append("too many acknowledgements") }
    if received.isEmpty != (acknowledgeAt == nil) {
      faults.append("acknowledgements without a time, or a time without them")
    }
    if asked.count > Gossip.askedLimit { faults.append("too many requests") }
    return faults
  }
}
