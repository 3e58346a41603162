import MusterBase
import MusterChannel
import MusterCore

/// What a host remembers of its channel when its process is gone.
///
/// Everything is on it at the moment that the node asks for it: what a real disk may lose in a
/// power cut is for the store's own tests.
struct Disk: Sendable {
  /// By id; bounded by what a document holds, since nodes say what they need no more.
  private var entries = PeerTable<EntryID, [UInt8]>()
  private var shown: [EntryID] = []
  /// In rising order.
  private(set) var keys: [EpochKey] = []
  /// Whether this host's own node has shown its invite.
  var holdsRedemption = false

  /// The entries in the order of their ids.
  var signedEntries: [[UInt8]] { entries.map(\.value) }

  /// What people have not been told of.
  var unshown: [EntryID] { entries.keys.filter { !shown.contains($0) } }

  mutating func shown(_ id: EntryID) { shown.append(id) }

  var count: Int { entries.count }

  func holds(_ id: EntryID) -> Bool { entries.index(of: id) != nil }

  mutating func keep(_ entry: [UInt8], id: EntryID) { entries[id] = entry }

  mutating func forget(_ ids: [EntryID]) {
    for id in ids { entries[id] = nil }
  }

  mutating func keep(_ key: EpochKey) {
    guard !keys.contains(where: { $0.number == key.number }) else { return }
    keys.append(key)
    keys.sort { $0.number < $1.number }
  }
}
