import MusterBase
import MusterWire

/// A queue of entries for one neighbour, retransmitted until acknowledged, with congestion control.
///
/// The window counts entries and follows TCP (RFC 5681): it grows with acknowledgements, and halves
/// on loss and when the round trip time shows a growing queue. Gossip thus does not saturate a link
/// of a few tens of kbit/s.
struct Outbox: Sendable {
  static let firstWindow = 4.0
  static let windowLimit = 64.0
  static let firstTimeout = Duration.milliseconds(200)
  static let shortestTimeout = Duration.milliseconds(60)
  static let longestTimeout = Duration.seconds(3)
  /// The maximum number of transmissions of an entry; anti-entropy finds the entries that have
  /// still not arrived.
  static let attempts = 6
  /// A round trip time this much longer than the shortest one indicates a growing queue.
  static let queueing = Duration.milliseconds(100)

  private struct Flight: Sendable {
    var entry: SignedEntry
    var sentAt: Instant
    var dueAt: Instant
    var timeout: Duration
    var attempts = 1
  }

  /// Entries other than messages, which are sent first, in the order in which this node got them:
  /// a report about links must not overtake those of other members that it results from.
  private var urgent: [SignedEntry] = []
  /// Messages of this node; a flood of others' messages that it passes on does not delay them.
  private var ownMessages: [SignedEntry] = []
  private var bulk: [SignedEntry] = []
  private var flights: [Flight] = []
  /// Entries not acknowledged in time; retransmitted before all others when the window has room.
  private var lost: [Flight] = []
  private var window = firstWindow
  private var roundTrip: Duration?
  private var shortestRoundTrip: Duration?
  private var halvedAt: Instant?
  /// Whether an entry did not fit; the documents are compared once the outbox is empty.
  private(set) var hasOverflowed = false

  private var count: Int {
    flights.count + lost.count + urgent.count + ownMessages.count + bulk.count
  }
  var isEmpty: Bool { count == 0 }
  var deadline: Instant? { flights.reduce(nil) { soonest($0, $1.dueAt) } }

  func contains(_ id: EntryID) -> Bool {
    flights.contains { $0.entry.id == id } || lost.contains { $0.entry.id == id }
      || (urgent + ownMessages + bulk).contains { $0.id == id }
  }

  /// Queues an entry; returns false if there is no room for it. An entry of this node (`isOwn`)
  /// takes the room of another's.
  @discardableResult
  mutating func add(_ entry: SignedEntry, isOwn: Bool = false) -> Bool {
    guard !contains(entry.id) else { return true }
    if count >= Limits.outboxEntries {
      hasOverflowed = true
      guard isOwn, dropOne(notOf: entry.entry.author) else { return false }
    }
    if entry.entry.body.kind != .message {
      urgent.append(entry)
    } else if isOwn {
      ownMessages.append(entry)
    } else {
      bulk.append(entry)
    }
    return true
  }

  /// Drops the last entry in the queue that is not of this author; returns whether there is one.
  private mutating func dropOne(notOf author: NodeID) -> Bool {
    if bulk.popLast() != nil { return true }
    guard let index = urgent.lastIndex(where: { $0.entry.author != author }) else { return false }
    urgent.remove(at: index)
    return true
  }

  /// Removes entries that are obsolete or that the neighbour already has.
  mutating func drop(where isNeedless: (SignedEntry) -> Bool) {
    guard !isEmpty else { return }
    urgent.removeAll(where: isNeedless)
    ownMessages.removeAll(where: isNeedless)
    bulk.removeAll(where: isNeedless)
    flights.removeAll { isNeedless($0.entry) }
    lost.removeAll { isNeedless($0.entry) }
  }

  /// Removes acknowledged entries, given by id prefix, and grows the window.
  mutating func acknowledged(_ ids: [UInt64], at now: Instant) {
    for id in ids {
      guard let index = flights.firstIndex(where: { $0.entry.id.prefix == id }) else {
        // A late acknowledgement still prevents a retransmission.
        lost.removeAll { $0.entry.id.prefix == id }
        continue
      }
      let flight = flights.remove(at: index)
      // Retransmitted entries give no sample: it is ambiguous which copy was acknowledged (Karn's
      // algorithm).
      if flight.attempts == 1 { measured(now - flight.sentAt, at: now) }
      window = min(window + 1, Self.windowLimit)
    }
  }

  /// The entries to send now: lost entries first, then new ones, as far as the window allows.
  mutating func due(at now: Instant) -> [SignedEntry] {
    collectLost(at: now)
    var due: [SignedEntry] = []
    while flights.count < Int(window) {
      if !lost.isEmpty {
        var flight = lost.removeFirst()
        flight.attempts += 1
        flight.timeout = min(flight.timeout * 2, Self.longestTimeout)
        flight.dueAt = now + flight.timeout
        flights.append(flight)
        due.append(flight.entry)
      } else if let entry = next() {
        let timeout = self.timeout
        flights.append(Flight(entry: entry, sentAt: now, dueAt: now + timeout, timeout: timeout))
        due.append(entry)
      } else {
        break
      }
    }
    return due
  }

  private mutating func collectLost(at now: Instant) {
    guard flights.contains(where: { $0.dueAt <= now }) else { return }
    halve(at: now)
    lost += flights.filter { $0.dueAt <= now && $0.attempts < Self.attempts }
    flights.removeAll { $0.dueAt <= now }
  }

  /// Whether entries did not fit and the outbox is empty again, so the documents can be
  /// compared; resets `hasOverflowed`.
  mutating func takeOverflow() -> Bool {
    guard hasOverflowed, isEmpty else { return false }
    hasOverflowed = false
    return true
  }

  private mutating func next() -> SignedEntry? {
    if !urgent.isEmpty { return urgent.removeFirst() }
    if !ownMessages.isEmpty { return ownMessages.removeFirst() }
    return bulk.isEmpty ? nil : bulk.removeFirst()
  }

  private var timeout: Duration {
    guard let roundTrip else { return Self.firstTimeout }
    return min(max(roundTrip * 2 + .milliseconds(40), Self.shortestTimeout), Self.longestTimeout)
  }

  private mutating func measured(_ sample: Duration, at now: Instant) {
    roundTrip = roundTrip.map { $0 * 0.875 + sample * 0.125 } ?? sample
    shortestRoundTrip = shortestRoundTrip.map { min($0, sample) } ?? sample
    if let shortestRoundTrip, sample > shortestRoundTrip + Self.queueing { halve(at: now) }
  }

  /// Halves the window, at most once per round trip: a single full queue delays many entries.
  private mutating func halve(at now: Instant) {
    if let halvedAt, now - halvedAt < roundTrip ?? Self.firstTimeout { return }
    halvedAt = now
    window = max(window / 2, 1)
  }

  /// The violated invariants: bounds, and entries queued twice.
  func checkInvariants() -> [String] {
    var faults: [String] = []
    if count > Limits.outboxEntries { faults.append("\(count) entries in an outbox") }
    if window < 1 || window > Self.windowLimit { faults.append("a window of \(window)") }
    let ids = (urgent + ownMessages + bulk + (flights + lost).map(\.entry)).map(\.id).sorted()
    if zip(ids, ids.dropFirst()).contains(where: { $0 == $1 }) {
      faults.append("an entry is in an outbox twice")
    }
    if flights.contains(where: { $0.attempts > Self.attempts }) {
      faults.append("an entry is sent too often")
    }
    return faults
  }
}
