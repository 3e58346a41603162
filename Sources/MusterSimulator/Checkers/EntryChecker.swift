import MusterBase
import MusterChannel

/// Checks that a node enters each call that it should, and none that its user has left.
///
/// Follows what users ask for, rather than what nodes note of it.
public struct EntryChecker: Sendable {
  private struct Record: Sendable {
    /// Whether the node enters every call that members start.
    var answers = false
    /// Whether the user wants to be in a call; until the node is in one, or gives up.
    var isAsked = false
    /// The call that the user left, or declined.
    var left: CallID?
    /// The call that the node is in.
    var inside: CallID?
    /// The time since which the node should be in a call and is not.
    var missingSince: Instant?
  }

  private var records: [Record]

  /// The time within which a node enters a call: at once, unless it has just met its first
  /// neighbour, whose document it waits for (`ChannelState.initialSyncDeadline`).
  private static let limit = Duration.seconds(1)

  /// `nodes` is the number of hosts; methods take their indices, 0 to `nodes` - 1.
  public init(nodes: Int) { records = Array(repeating: Record(), count: nodes) }

  // MARK: What users ask for

  /// Records that a node joins the channel, with these standing orders.
  public mutating func joined(answers: Bool, wantsCall: Bool, at index: Int) {
    records[index] = Record(answers: answers, isAsked: wantsCall)
  }

  /// Records that a node leaves the channel, or that its process ends.
  public mutating func left(at index: Int) { records[index] = Record() }

  /// Records that the user asks for the call.
  public mutating func asked(at index: Int) { records[index].isAsked = true }

  /// Records that the user leaves the call that the node knows, nil for none.
  public mutating func declined(_ call: CallID?, at index: Int) {
    records[index].isAsked = false
    records[index].left = call
  }

  /// Records that the node was refused a call; with `waits` it enters the next one.
  public mutating func refused(waits: Bool, at index: Int) {
    records[index].isAsked = records[index].isAsked && waits
  }

  // MARK: Calls

  /// Records the call that a node is in after an input (nil for none), and the active one that it
  /// may be in (nil for none). Returns the fault; nil for none.
  public mutating func isIn(
    _ call: CallID?, mayEnter active: CallID?, at index: Int, _ now: Instant
  ) -> String? {
    let former = records[index].inside
    records[index].inside = call
    let record = records[index]
    if let call {
      records[index].missingSince = nil
      // Calls that merge move the node from the one to the other.
      guard former == nil else { return nil }
      records[index].isAsked = false
      records[index].left = nil
      if record.isAsked || record.answers && call != record.left { return nil }
      return call == record.left
        ? "enters call \(call), which it has left" : "enters call \(call) unasked"
    }
    guard let active, record.isAsked || record.answers && active != record.left else {
      records[index].missingSince = nil
      return nil
    }
    let since = record.missingSince ?? now
    records[index].missingSince = since
    return now - since >= Self.limit ? "does not enter call \(active)" : nil
  }
}
