import MusterBase
import MusterWire

extension Gossip {
  /// Takes in what a neighbour sent: entries, acknowledgements, digests, ranges and wishes.
  public mutating func receive(
    _ message: Control, from peer: NodeID, at now: Instant
  ) -> [Output] {
    guard let place = neighbours.index(of: peer) else { return [] }
    var out: [Output] = []
    switch message {
    case .entry(let bytes): receiveEntry(bytes, from: place, at: now, &out)
    case .entriesReceived(let ids):
      neighbours[at: place].outbox.acknowledged(ids, at: now)
      flush(peer, at: now, &out)
    case .digest(let theirs): receiveDigest(theirs, from: place, at: now, &out)
    case .ranges(let ranges): receiveRanges(ranges, from: place, at: now, &out)
    case .want(let ids): receiveWishes(ids, from: place, at: now, &out)
    case .wish, .ping, .pong, .probe, .probed, .epochKey, .refused: break
    }
    return out
  }

  private mutating func receiveEntry(
    _ bytes: [UInt8], from place: Int, at now: Instant, _ out: inout [Output]
  ) {
    let id = SignedEntry.id(of: bytes).prefix
    // What is known needs no check of its signature, only an acknowledgement.
    if document.contains(id) {
      counters.entriesRepeated &+= 1
      return noteReceived(id, from: place, at: now, &out)
    }
    guard neighbours[at: place].entries.take(at: now) else {
      counters.overBudget &+= 1
      return
    }
    let entry: SignedEntry
    do { entry = try SignedEntry.verified(bytes, in: channel) } catch {
      if error == .forged { counters.forged &+= 1 } else { counters.malformed &+= 1 }
      return
    }
    // Nobody is so far ahead by cause alone, and one lie must not use up the counter for all. Who
    // knows nothing yet believes what it hears.
    let known = document.lamport
    guard known == 0 || entry.entry.lamport <= known &+ Self.lamportLead else {
      counters.tooFarAhead &+= 1
      return
    }
    noteReceived(id, from: place, at: now, &out)
    let isRelayed = neighbours[at: place].relayed.take(at: now)
    take(entry, from: neighbours.keys[place], pushes: isRelayed, at: now, &out)
  }

  private mutating func receiveDigest(
    _ theirs: DocumentDigest, from place: Int, at now: Instant, _ out: inout [Output]
  ) {
    guard theirs != document.digest else {
      counters.digestsEqual &+= 1
      return
    }
    counters.digestsDifferent &+= 1
    guard neighbours[at: place].answers.take(at: now) else {
      counters.overBudget &+= 1
      return
    }
    send(document.rootRanges, to: place, &out)
  }

  private mutating func receiveRanges(
    _ ranges: [RangeSummary], from place: Int, at now: Instant, _ out: inout [Output]
  ) {
    guard ranges.count <= Control.rangeLimit, neighbours[at: place].answers.take(at: now) else {
      counters.overBudget &+= 1
      return
    }
    let found = document.compare(ranges)
    for entry in found.lacking { neighbours[at: place].outbox.add(entry) }
    ask(found.wanted, of: place, at: now, &out)
    send(found.ranges, to: place, &out)
    flush(neighbours.keys[place], at: now, &out)
  }

  private mutating func receiveWishes(
    _ ids: [UInt64], from place: Int, at now: Instant, _ out: inout [Output]
  ) {
    guard neighbours[at: place].answers.take(at: now) else {
      counters.overBudget &+= 1
      return
    }
    for id in ids.prefix(Control.idLimit) {
      for entry in document.entry(id) { neighbours[at: place].outbox.add(entry) }
    }
    flush(neighbours.keys[place], at: now, &out)
  }

  /// Asks for entries that nobody was asked for just now.
  private mutating func ask(
    _ ids: [UInt64], of place: Int, at now: Instant, _ out: inout [Output]
  ) {
    asked.removeAll { $0.until <= now }
    var wanted: [UInt64] = []
    for id in ids where asked.count < Self.askedLimit && !asked.contains(where: { $0.id == id }) {
      asked.append((id, now + Self.askedFor))
      wanted.append(id)
    }
    while !wanted.isEmpty {
      let part = Array(wanted.prefix(Control.idLimit))
      wanted.removeFirst(part.count)
      out.append(.send(.want(part), to: neighbours.keys[place]))
    }
  }

  /// As many messages as it takes; none is larger than a datagram holds.
  private mutating func send(_ ranges: [RangeSummary], to place: Int, _ out: inout [Output]) {
    var part: [RangeSummary] = []
    var size = 0
    func flush() {
      if !part.isEmpty { out.append(.send(.ranges(part), to: neighbours.keys[place])) }
    }
    // What is left out is compared the next time.
    for range in ranges.prefix(Self.rangesAtOnce) {
      if size + range.size > Self.rangeBytes || part.count == Control.rangeLimit {
        flush()
        (part, size) = ([], 0)
      }
      part.append(range)
      size += range.size
      counters.rangesSent &+= 1
    }
    flush()
  }

  private static let rangeBytes = 1000
  /// Four levels down for a document that differs everywhere, and some kilobytes at most.
  private static let rangesAtOnce = 256
}
