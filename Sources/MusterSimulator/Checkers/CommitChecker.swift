import MusterBase
import MusterChannel
import MusterWire

/// Checks that entries of the kinds that must be durable are on their authors' disks before other
/// nodes receive them.
public struct CommitChecker: Sendable {
  /// The set of entries that have ever been on their authors' disks.
  private var written = PeerTable<EntryID, Bool>()

  /// A checker before the first entry is written.
  public init() {}

  /// Records that an author's disk has an entry.
  public mutating func wrote(_ id: EntryID) { written[id] = true }

  /// The fault when a node has another author's entry before the author has written it; nil for
  /// none.
  public func heard(_ id: EntryID, of kind: EntryBody.Kind?) -> String? {
    guard Self.mustBeWritten(kind), written.index(of: id) == nil else { return nil }
    return "has an entry that its author has not written"
  }

  /// Whether entries of a kind are sent only after they are written (`ChannelState`, Commit.swift).
  static func mustBeWritten(_ kind: EntryBody.Kind?) -> Bool {
    switch kind {
    case .grant, .epoch, .message, .end: true
    case .presence, .neighbourReport, .redemption, .claim, .joining, .moderation, nil: false
    }
  }
}
