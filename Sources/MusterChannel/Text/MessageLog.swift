import MusterBase
import MusterWire

/// Delivers every message once, in causal order.
///
/// Each message names its predecessors; messages of one burst are delivered in document order. The
/// wait for a missing predecessor is bounded.
public struct MessageLog: Sendable {
  /// The delay of a message, in which the rest of its burst arrives, so that the burst is shown in
  /// document order.
  public static let gathering = Duration.milliseconds(30)
  /// The maximum wait for a missing predecessor, counted from the arrival of the message. Later
  /// arrivals do not prolong it, not even those of other predecessors: otherwise a flood, of which
  /// members name the newest messages as predecessors, would delay everyone's messages.
  public static let patience = Duration.seconds(3)
  /// The maximum number of ids in `Front.missing`.
  static let missingLimit = 256
  /// The maximum number of ids in `skipped`.
  static let skippedLimit = 1024

  private struct Waiting: Sendable {
    var entry: SignedEntry
    var after: [UInt64]
    var arrived: Instant
  }

  /// Messages not shown yet, in document order; at most `Limits.messages`.
  private var waiting: [Waiting] = []
  private var shown = RecentIDs(capacity: Limits.messages)
  /// Messages that have arrived, but are not in the document.
  private var skipped = RecentIDs(capacity: Self.skippedLimit)
  private var front = Front()
  /// The time at which the next message may be shown; nil if no message waits.
  public private(set) var deadline: Instant?

  /// Creates an empty log.
  public init() {}

  /// Restores the messages that an earlier process has delivered.
  public mutating func restore(_ entries: [SignedEntry]) {
    for entry in entries.sorted() {
      guard case .message(let message) = entry.entry.body else { continue }
      front.add(entry, after: message.after)
      shown.insert(entry.id.prefix)
    }
  }

  /// Inserts a new message; returns the messages that can now be delivered, in order.
  public mutating func insert(_ entry: SignedEntry, at now: Instant) -> [SignedEntry] {
    guard case .message(let message) = entry.entry.body, !shown.contains(entry.id.prefix) else {
      return []
    }
    let position = index(of: entry)
    guard position == waiting.count || waiting[position].entry != entry else { return [] }
    waiting.insert(Waiting(entry: entry, after: message.after, arrived: now), at: position)
    deadline = soonest(deadline, now + Self.gathering)
    let overflow = waiting.count > Limits.messages ? [show(waiting.removeFirst())] : []
    return overflow + tick(at: now)
  }

  /// Notes that a message will not arrive, because the document does not keep it: no message need
  /// wait for it.
  public mutating func skip(_ entry: SignedEntry, at now: Instant) {
    guard entry.entry.body.kind == .message else { return }
    skipped.insert(entry.id.prefix)
    if waiting.contains(where: { $0.after.contains(entry.id.prefix) }) {
      deadline = soonest(deadline, now)
    }
  }

  /// Dequeues the messages that can now be delivered, in document order.
  public mutating func tick(at now: Instant) -> [SignedEntry] {
    guard let deadline, deadline <= now else { return [] }
    let gathered = waiting.lastIndex { now - $0.arrived >= Self.gathering } ?? -1
    let overdue = overdue(at: now)
    var ready: [SignedEntry] = []
    var kept: [Waiting] = []
    for (index, item) in waiting.enumerated() {
      // A message ordered before a gathered one is delivered with it, even if it has just arrived.
      if index <= gathered, isFree(item) || overdue.contains(item.entry.id.prefix) {
        ready.append(show(item))
      } else {
        kept.append(item)
      }
    }
    waiting = kept
    self.deadline = kept.reduce(nil) { next, item in
      soonest(next, item.arrived + (isFree(item) ? Self.gathering : Self.patience))
    }
    return ready
  }

  /// The id prefixes of the newest messages without a successor, which become the predecessors of
  /// this node's next message: shown messages, and those that wait only for the rest of their
  /// burst. A message with an invented predecessor thus delays only itself.
  public var heads: [UInt64] {
    var front = front
    var coming = RecentIDs(capacity: Limits.messages)
    for item in waiting
    where item.after.allSatisfy({ isPast($0) || coming.contains($0) }) {
      front.add(item.entry, after: item.after)
      coming.insert(item.entry.id.prefix)
    }
    return front.heads.map(\.id.prefix)
  }

  private func isFree(_ item: Waiting) -> Bool { item.after.allSatisfy(isPast) }

  private func isPast(_ id: UInt64) -> Bool { shown.contains(id) || skipped.contains(id) }

  /// The messages that need not wait longer for missing predecessors, by the first eight bytes of
  /// their ids. Whatever such a message follows directly or indirectly waits no longer either, even
  /// if it arrived later: otherwise the message would be shown before its predecessor.
  private func overdue(at now: Instant) -> RecentIDs {
    var overdue = RecentIDs(capacity: Limits.messages * (1 + Message.predecessorLimit))
    for item in waiting.reversed()
    where item.arrived + Self.patience <= now || overdue.contains(item.entry.id.prefix) {
      overdue.insert(item.entry.id.prefix)
      for predecessor in item.after { overdue.insert(predecessor) }
    }
    return overdue
  }

  private mutating func show(_ item: Waiting) -> SignedEntry {
    shown.insert(item.entry.id.prefix)
    front.add(item.entry, after: item.after)
    return item.entry
  }

  private func index(of entry: SignedEntry) -> Int {
    var (low, high) = (0, waiting.count)
    while low < high {
      let middle = (low + high) / 2
      if waiting[middle].entry < entry { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// The violated invariants of this log (for tests); empty if all hold.
  package func checkInvariants() -> [String] {
    var faults: [String] = []
    if waiting.count > Limits.messages { faults.append("\(waiting.count) messages wait") }
    if waiting.isEmpty != (deadline == nil) { faults.append("messages wait without a time") }
    if !zip(waiting, waiting.dropFirst()).allSatisfy({ $0.entry < $1.entry }) {
      faults.append("messages wait out of order")
    }
    if waiting.contains(where: { shown.contains($0.entry.id.prefix) }) {
      faults.append("a message that was shown waits")
    }
    if front.heads.count > Message.predecessorLimit { faults.append("too many heads") }
    return faults
  }

  /// The messages without a known successor.
  private struct Front: Sendable {
    /// The messages in document order; at most `Message.predecessorLimit`.
    var heads: [SignedEntry] = []
    /// The ids of messages that were named as predecessors before their arrival.
    var missing = RecentIDs(capacity: missingLimit)

    mutating func add(_ entry: SignedEntry, after: [UInt64]) {
      for id in after {
        let count = heads.count
        heads.removeAll { $0.id.prefix == id }
        if heads.count == count { missing.insert(id) }
      }
      guard !missing.contains(entry.id.prefix) else { return }
      heads.append(entry)
      heads.sort()
      if heads.count > Message.predecessorLimit { heads.removeFirst() }
    }
  }
}
