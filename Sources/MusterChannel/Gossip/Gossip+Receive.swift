import MusterBase
import MusterWire

extension Gossip {
  /// Processes entries, acknowledgements, digests, ranges and requests from a neighbour. Entries
  /// that the rights do not admit yet wait for `reconsider`.
  public mutating func receive(
    _ message: Control, from peer: NodeID, at now: Instant,
    admits: (Entry) -> Bool = { _ in true }
  ) -> [Output] {
    guard let position = neighbours.index(of: peer) else { return [] }
    var out: [Output] = []
    switch message {
    case .entry(let bytes): receiveEntry(bytes, from: position, at: now, admits, &out)
    case .entriesReceived(let ids):
      neighbours[at: position].outbox.acknowledged(ids, at: now)
      flush(position, at: now, &out)
    case .digest(let theirs): receiveDigest(theirs, from: position, at: now, &out)
    case .ranges(let ranges): receiveRanges(ranges, from: position, at: now, &out)
    case .want(let ids): receiveRequest(ids, from: position, at: now, &out)
    case .subscribe, .ping, .pong, .probe, .probed, .epochKey, .refused, .seen, .candidates,
      .sentLayer:
      break
    }
    return out
  }

  private mutating func receiveEntry(
    _ bytes: [UInt8], from position: Int, at now: Instant, _ admits: (Entry) -> Bool,
    _ out: inout [Output]
  ) {
    let id = SignedEntry.id(of: bytes)
    // A known entry needs no verification, only an acknowledgement.
    if document.contains(id) {
      counters.entriesRepeated &+= 1
      neighbours[at: position].outbox.drop { $0.id == id }
      noteReceived(id.prefix, from: position, at: now, &out)
      return flush(position, at: now, &out)
    }
    guard neighbours[at: position].entries.take(at: now) else {
      counters.overBudget &+= 1
      return
    }
    let entry: SignedEntry
    do { entry = try SignedEntry.verified(bytes, in: channel) } catch {
      if error == .forged { counters.forged &+= 1 } else { counters.malformed &+= 1 }
      return
    }
    neighbours[at: position].asked[id.prefix] = nil
    noteReceived(id.prefix, from: position, at: now, &out)
    guard admits(entry.entry) else {
      counters.notAdmitted &+= 1
      // A redemption does not wait: an invalid one would be verified again at every change of
      // rights.
      if entry.entry.body.kind != .redemption, !waiting.contains(where: { $0.entry.id == id }) {
        hold(Waiting(entry: entry, source: neighbours.keys[position]))
      }
      return flush(position, at: now, &out)
    }
    let isRelayed = neighbours[at: position].relayed.take(at: now)
    take(entry, from: neighbours.keys[position], pushes: isRelayed, at: now, &out)
  }

  /// Holds back an entry that the rights do not admit yet. The source that has sent most entries
  /// loses its oldest if there are too many.
  private mutating func hold(_ one: Waiting) {
    waiting.append(one)
    guard waiting.count > Self.waitingLimit else { return }
    var counts = PeerTable<NodeID, Int>()
    for one in waiting { counts[one.source] = (counts[one.source] ?? 0) + 1 }
    let largest = counts.max { $0.value < $1.value }?.key
    if let index = waiting.firstIndex(where: { $0.source == largest }) { waiting.remove(at: index) }
  }

  /// Inserts the waiting entries that the rights now admit.
  mutating func reconsider(at now: Instant, admits: (Entry) -> Bool) -> [Output] {
    var out: [Output] = []
    let before = waiting
    waiting = before.filter { !admits($0.entry.entry) }
    guard waiting.count < before.count else { return out }
    for one in before where !waiting.contains(where: { $0.entry.id == one.entry.id }) {
      take(one.entry, from: one.source, at: now, &out)
    }
    return out
  }

  private mutating func receiveDigest(
    _ theirs: DocumentDigest, from position: Int, at now: Instant, _ out: inout [Output]
  ) {
    guard theirs != document.digest else {
      counters.digestsEqual &+= 1
      comparedAt = comparedAt ?? now
      // This digest lets the neighbour see the equality, too; it sends no answer then.
      let peer = neighbours.keys[position]
      if neighbours[at: position].sentDigest != theirs { compare(with: peer, &out) }
      return
    }
    counters.digestsDifferent &+= 1
    guard maySpend(on: position, at: now) else { return }
    send(document.rootRanges, to: position, at: now, &out)
  }

  private mutating func receiveRanges(
    _ ranges: [RangeSummary], from position: Int, at now: Instant, _ out: inout [Output]
  ) {
    guard ranges.count <= Control.rangeLimit, maySpend(on: position, at: now) else { return }
    let found = document.compare(ranges)
    deliver(found.lacking, to: position, at: now)
    ask(found.wanted, of: position, at: now, &out)
    send(found.ranges, to: position, at: now, &out)
    flush(position, at: now, &out)
  }

  private mutating func receiveRequest(
    _ ids: [UInt64], from position: Int, at now: Instant, _ out: inout [Output]
  ) {
    // A request costs the neighbour little, and looking its entries up several times as much.
    if mayDeliverAny(to: position, at: now) {
      deliver(ids.prefix(Control.idLimit).flatMap { document.entry($0) }, to: position, at: now)
    }
    flush(position, at: now, &out)
  }

  /// Queues entries that a neighbour lacks or wants, as far as the budgets go; the next comparison
  /// finds the others.
  private mutating func deliver(_ entries: [SignedEntry], to position: Int, at now: Instant) {
    var lacking = entries.filter { !neighbours[at: position].outbox.contains($0.id) }
    let bytes = lacking.reduce(0) { $0 + $1.bytes.count }
    if !neighbours[at: position].delivery.has(Double(bytes), at: now) { lacking = inTurns(lacking) }
    var affordable: [SignedEntry] = []
    for entry in lacking {
      guard mayDeliver(entry, to: position, at: now) else { break }
      affordable.append(entry)
    }
    for entry in Self.inOrder(affordable) { neighbours[at: position].outbox.add(entry) }
  }

  /// Sorts entries so that principals take turns, those with the fewest entries first, and any of
  /// those with equally many; the authors of each principal likewise. Otherwise someone with many
  /// could keep the budgets from all that comes after these, comparison by comparison.
  private mutating func inTurns(_ entries: [SignedEntry]) -> [SignedEntry] {
    var principals = PeerTable<NodeID, (order: UInt64, entries: [SignedEntry])>()
    for entry in Self.inOrder(entries) {
      let principal = document.principal(of: entry)
      if principals.index(of: principal) == nil { principals[principal] = (random.next(), []) }
      _ = principals.update(principal) { $0.entries.append(entry) }
    }
    let lists = principals.map(\.value)
      .sorted { ($0.entries.count, $0.order) < ($1.entries.count, $1.order) }
    return Self.turns(of: lists.map { Self.authorsInTurns($0.entries) })
  }

  /// Sorts the entries of one principal so that its authors take turns.
  private static func authorsInTurns(_ entries: [SignedEntry]) -> [SignedEntry] {
    var authors = PeerTable<NodeID, [SignedEntry]>()
    for entry in entries {
      if authors.index(of: entry.entry.author) == nil { authors[entry.entry.author] = [] }
      _ = authors.update(entry.entry.author) { $0.append(entry) }
    }
    guard authors.count > 1 else { return entries }
    let lists = authors.map(\.value)
    return turns(
      of: lists.sorted { ($0.count, $0[0].entry.lamport) < ($1.count, $1[0].entry.lamport) })
  }

  /// One entry of each list, then another one of each; the shortest lists come first.
  private static func turns(of lists: [[SignedEntry]]) -> [SignedEntry] {
    var (turns, first): ([SignedEntry], Int) = ([], 0)
    for turn in 0..<(lists.last?.count ?? 0) {
      while lists[first].count <= turn { first += 1 }
      turns += lists[first...].map { $0[turn] }
    }
    return turns
  }

  /// Sorts grants, redemptions and key changes before the entries that they permit, and entries
  /// about calls before the presences of participants: the receiver derives events in the order of
  /// arrival. Otherwise document order, so that messages arrive after their predecessors.
  private static func inOrder(_ entries: [SignedEntry]) -> [SignedEntry] {
    func isRight(_ entry: SignedEntry) -> Bool {
      switch entry.entry.body.kind {
      case .grant, .epoch, .redemption: true
      default: false
      }
    }
    func isCall(_ entry: SignedEntry) -> Bool {
      switch entry.entry.body.kind {
      case .claim, .end, .joining, .moderation: true
      default: false
      }
    }
    let sorted = entries.sorted()
    return sorted.filter(isRight) + sorted.filter(isCall)
      + sorted.filter { !isRight($0) && !isCall($0) }
  }

  /// Requests entries that have not been requested from any neighbour recently.
  private mutating func ask(
    _ ids: [UInt64], of position: Int, at now: Instant, _ out: inout [Output]
  ) {
    forgetAsked(position, at: now)
    var wanted: [UInt64] = []
    for id in ids where neighbours[at: position].asked.count < Self.askedLimit {
      let isAskedFor = (0..<neighbours.count).contains { other in
        guard let since = neighbours[at: other].asked[id] else { return false }
        let pause = other == position ? Self.askedAgainAfter : Self.askedElsewhereAfter
        return now < since + pause
      }
      guard !isAskedFor else { continue }
      neighbours[at: position].asked[id] = now
      wanted.append(id)
    }
    for start in stride(from: 0, to: wanted.count, by: Control.idLimit) {
      let part = Array(wanted[start..<min(start + Control.idLimit, wanted.count)])
      out.append(.send(.want(part), to: neighbours.keys[position]))
    }
  }

  private mutating func forgetAsked(_ position: Int, at now: Instant) {
    var recent = PeerTable<UInt64, Instant>()
    for (id, since) in neighbours[at: position].asked where now < since + Self.askedAgainAfter {
      recent[id] = since
    }
    neighbours[at: position].asked = recent
  }

  /// Charges one anti-entropy message to a neighbour's budget; returns false if the budget is
  /// exhausted.
  private mutating func maySpend(on position: Int, at now: Instant) -> Bool {
    let may = neighbours[at: position].answers.take(Self.comparisonCost, at: now)
    if !may { counters.overBudget &+= 1 }
    return may
  }

  /// Sends ranges in messages of at most `rangeBytes`, as far as the budget allows.
  private mutating func send(
    _ ranges: [RangeSummary], to position: Int, at now: Instant, _ out: inout [Output]
  ) {
    guard !ranges.isEmpty else { return }
    // Ranges beyond the budget wait for a later round, and so do the entries that the last ranges
    // show to be lacking; the random start varies which ranges are left out, and which come last.
    let isSplit =
      ranges.count > Control.rangeLimit || ranges.reduce(0) { $0 + $1.size } > Self.rangeBytes
    let first = isSplit ? random.below(ranges.count) : 0
    var part: [RangeSummary] = []
    var size = 0
    func flush() {
      if !part.isEmpty { out.append(.send(.ranges(part), to: neighbours.keys[position])) }
      (part, size) = ([], 0)
    }
    for range in ranges[first...] + ranges[..<first] {
      guard neighbours[at: position].answers.take(Double(range.size), at: now) else {
        counters.overBudget &+= 1
        break
      }
      if size + range.size > Self.rangeBytes || part.count == Control.rangeLimit { flush() }
      part.append(range)
      size += range.size
      counters.rangesSent &+= 1
    }
    flush()
  }

  private static let rangeBytes = 1000
  /// The part of the answer budget, in bytes, that processing one message costs.
  private static let comparisonCost = 100.0
}
