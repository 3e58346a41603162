import MusterBase
import MusterWire

/// Shows every message once, causes before effects.
///
/// What came before a message is named in it (its predecessors); what arrives in one burst comes
/// out in the order of the document. A predecessor that does not come is waited for a while only.
public struct MessageLog: Sendable {
  /// Messages of one burst are gathered for this long, and then shown in their order.
  public static let gathering = Duration.milliseconds(30)
  /// How long a missing predecessor is waited for, counted from the newest arrival: while a long
  /// history comes in, it may still be among what follows.
  public static let patience = Duration.seconds(3)
  /// The same, counted from the arrival of the message that waits, whatever else comes in.
  public static let longestPatience = Duration.seconds(10)
  /// Predecessors remembered that were missing when a message was shown without them.
  static let missingLimit = 256

  private struct Waiting: Sendable {
    var entry: SignedEntry
    var after: [UInt64]
    var arrived: Instant
  }

  /// Not yet shown, in the order; at most `Limits.messages`.
  private var waiting: [Waiting] = []
  private var shown = RecentIDs(capacity: Limits.messages)
  private var front = Front()
  private var lastArrival = Instant.zero
  /// When something may next be shown.
  public private(set) var deadline: Instant?

  public init() {}

  /// Takes in what an earlier process has shown.
  public mutating func restore(_ entries: [SignedEntry]) {
    for entry in entries.sorted() {
      guard case .message(let message) = entry.entry.body else { continue }
      front.add(entry, after: message.after)
      shown.insert(entry.id.prefix)
    }
  }

  /// Takes in a new message; what may now be shown, in the order.
  public mutating func insert(_ entry: SignedEntry, at now: Instant) -> [SignedEntry] {
    guard case .message(let message) = entry.entry.body, !shown.contains(entry.id.prefix) else {
      return []
    }
    let position = index(of: entry)
    guard position == waiting.count || waiting[position].entry != entry else { return [] }
    waiting.insert(Waiting(entry: entry, after: message.after, arrived: now), at: position)
    lastArrival = now
    deadline = soonest(deadline, now + Self.gathering)
    let overflow = waiting.count > Limits.messages ? [show(waiting.removeFirst())] : []
    return overflow + tick(at: now)
  }

  /// What may now be shown, in the order.
  public mutating func tick(at now: Instant) -> [SignedEntry] {
    guard let deadline, deadline <= now else { return [] }
    let gathered = waiting.lastIndex { now - $0.arrived >= Self.gathering } ?? -1
    var ready: [SignedEntry] = []
    var kept: [Waiting] = []
    for (index, item) in waiting.enumerated() {
      // What precedes a gathered message goes with it, however late it came.
      if index <= gathered, isFree(item) || patienceEnd(item) <= now {
        ready.append(show(item))
      } else {
        kept.append(item)
      }
    }
    waiting = kept
    self.deadline = kept.reduce(nil) { next, item in
      soonest(next, isFree(item) ? item.arrived + Self.gathering : patienceEnd(item))
    }
    return ready
  }

  /// The newest messages that no other follows, for the next own message: those shown, and those
  /// that only have to be gathered. So whoever names what does not exist delays itself alone.
  public var heads: [UInt64] {
    var front = front
    var coming = RecentIDs(capacity: Limits.messages)
    for item in waiting
    where item.after.allSatisfy({ shown.contains($0) || coming.contains($0) }) {
      front.add(item.entry, after: item.after)
      coming.insert(item.entry.id.prefix)
    }
    return front.heads.map(\.id.prefix)
  }

  private func isFree(_ item: Waiting) -> Bool { item.after.allSatisfy { shown.contains($0) } }

  private func patienceEnd(_ item: Waiting) -> Instant {
    min(lastArrival + Self.patience, item.arrived + Self.longestPatience)
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

  /// The messages that nobody follows.
  private struct Front: Sendable {
    /// In the order; at most `Message.predecessorLimit`.
    var heads: [SignedEntry] = []
    /// Followed before they came.
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
