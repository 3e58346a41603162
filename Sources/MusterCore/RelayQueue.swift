import MusterBase
import MusterLink
import MusterWire

/// The datagrams that wait until their pair's budget allows them to be relayed.
///
/// A relay delays before it drops, as a link does, so that the congestion control of both ends sees
/// by the delay that they send too much.
struct RelayQueue: Sendable {
  struct Entry: Sendable {
    let datagram: ArraySlice<UInt8>
    /// The member that sent it, and the link by which it leaves.
    let sender: NodeID
    let target: LinkID
    let leavesAt: Instant
  }

  /// In order of departure. `RelayBudget` bounds the number of bytes.
  private var entries: [Entry] = []

  /// The time at which the next datagram leaves; nil if none waits.
  var deadline: Instant? { entries.first?.leavesAt }

  mutating func add(_ entry: Entry) {
    let later = entries.reversed().prefix { $0.leavesAt > entry.leavesAt }.count
    entries.insert(entry, at: entries.count - later)
  }

  /// Takes out the datagrams that leave now.
  mutating func release(at now: Instant) -> [Entry] {
    let due = Array(entries.prefix { $0.leavesAt <= now })
    entries.removeFirst(due.count)
    return due
  }
}
