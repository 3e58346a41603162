import MusterBase
import MusterWire

/// Calls that their initiators have ended: whoever still claims to be in one has not heard.
///
/// An end counts for the pair of call and initiator only, so that nobody can end another's call.
struct EndedCalls: Sendable {
  static let capacity = 64
  /// So that one member alone cannot push out what the others have ended.
  static let perInitiator = 8

  private struct Entry: Equatable, Sendable {
    var id: CallID
    var initiator: NodeID
  }

  /// Oldest first.
  private var entries: [Entry] = []

  var count: Int { entries.count }

  func contains(_ call: CallInfo) -> Bool {
    entries.contains(Entry(id: call.id, initiator: call.initiator))
  }

  /// The one of `calls` that was ended last.
  func latest(among calls: [CallInfo]) -> CallID? {
    entries.last { entry in
      calls.contains { $0.id == entry.id && $0.initiator == entry.initiator }
    }?.id
  }

  mutating func insert(_ id: CallID, by initiator: NodeID) {
    let entry = Entry(id: id, initiator: initiator)
    guard !entries.contains(entry) else { return }
    if entries.count(where: { $0.initiator == initiator }) >= Self.perInitiator,
      let oldest = entries.firstIndex(where: { $0.initiator == initiator })
    {
      entries.remove(at: oldest)
    }
    if entries.count >= Self.capacity { entries.removeFirst() }
    entries.append(entry)
  }
}
