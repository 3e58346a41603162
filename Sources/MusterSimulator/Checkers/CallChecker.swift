import MusterBase
import MusterChannel
import MusterWire

/// Checks that an ended call never becomes active again at a node that knows of its end.
///
/// An end covers its author's claim of the same term and all claims of earlier terms. A claim of a
/// higher term, by a successor on the other side of a partition, stays valid, as does another
/// author's claim of the same term.
public struct CallChecker: Sendable {
  /// A claim or an end: the call, the term and the author.
  public struct Statement: Equatable, Sendable {
    /// The claimed or ended call.
    public var call: CallID
    /// The claimed or ended term, from 1.
    public var term: UInt32
    /// The author of the entry: the initiator of that term.
    public var author: NodeID

    /// A claim or an end as its entry states it.
    public init(call: CallID, term: UInt32, author: NodeID) {
      self.call = call
      self.term = term
      self.author = author
    }
  }

  /// The claims and ends on the disk of one host.
  private struct Memory: Sendable {
    var claims: [Statement] = []
    var ends: [Statement] = []
  }

  private var memories: [Memory]
  private var started: [CallID] = []
  private var terms: [Statement] = []
  private var ended: [CallID] = []
  /// The members removed from calls, whose ends count no more.
  private var removals: [(member: NodeID, call: CallID)] = []

  /// `nodes` is the number of hosts; methods take their indices, 0 to `nodes` - 1.
  public init(nodes: Int) { memories = Array(repeating: Memory(), count: nodes) }

  /// The call counts so far; a call that several hosts have stored counts once.
  public var totals: CallTotals {
    CallTotals(
      started: UInt64(started.count), ended: UInt64(ended.count), handedOver: UInt64(terms.count))
  }

  // MARK: Entries on disks

  /// Records that a host has a claim on its disk.
  public mutating func learnt(claim: Statement, at index: Int) {
    if claim.term == 1, !started.contains(claim.call) { started.append(claim.call) }
    if claim.term > 1, !terms.contains(claim) { terms.append(claim) }
    if !memories[index].claims.contains(claim) { memories[index].claims.append(claim) }
  }

  /// Records that a host has an end on its disk.
  public mutating func learnt(end: Statement, at index: Int) {
    if !ended.contains(end.call) { ended.append(end.call) }
    if !memories[index].ends.contains(end) { memories[index].ends.append(end) }
  }

  /// Records that somebody removes a member from a call. Where this becomes known, an end that the
  /// member has signed does not count any more.
  public mutating func removed(_ member: NodeID, from call: CallID) {
    removals.append((member, call))
  }

  /// Records that a host has lost its disk.
  public mutating func forgot(_ index: Int) { memories[index] = Memory() }

  // MARK: Active calls

  /// The fault in a call that a node considers active; nil for none.
  public func seen(_ call: CallInfo, at index: Int) -> String? {
    let memory = memories[index]
    let end = memory.ends.first { end in
      end.call == call.id && memory.claims.contains(end)
        && !removals.contains { $0 == (end.author, end.call) }
        && (call.term < end.term || call.term == end.term && call.initiator == end.author)
    }
    return end.map { "call \(call.id) of term \(call.term) is on, ended in term \($0.term)" }
  }
}
