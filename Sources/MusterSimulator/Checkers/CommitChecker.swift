import MusterBase
import MusterChannel
import MusterWire

/// Entries that must be durable before others hear of them are on their authors' disks first.
public struct CommitChecker: Sendable {
  /// Entries that have ever been on their authors' disks: a set in ascending order.
  private var written = PeerTable<EntryID, Bool>()

  /// No entry is on a disk yet.
  public init() {}

  /// An author's disk has an entry.
  public mutating func wrote(_ id: EntryID) { written[id] = true }

  /// The fault of another node's having an entry; nil when its author has written it.
  public func heard(_ id: EntryID, of kind: EntryBody.Kind?) -> String? {
    guard Self.mustBeWritten(kind), written.index(of: id) == nil else { return nil }
    return "has an entry that its author has not written"
  }

  /// The kinds of entries that are heard only once they are written (`ChannelState`, Commit.swift).
  static func mustBeWritten(_ kind: EntryBody.Kind?) -> Bool {
    switch kind {
    case .grant, .epoch, .message, .end: true
    case .presence, .neighbourReport, .redemption, .claim, nil: false
    }
  }
}
