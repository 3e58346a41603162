import MusterBase
import MusterWire

/// The last entries that were received and not kept, to detect equivocation against them.
///
/// Without them a node that has a newer entry of an author would drop both conflicting entries as
/// outdated, and never agree with the others about the author.
struct PassedEntries: Sendable {
  /// The two proofs of an equivocation are sent one after the other; so many entries may arrive in
  /// between.
  static let limit = 256

  /// Author and sequence in short, for a quick search.
  private var marks: [UInt64] = []
  private var entries: [SignedEntry] = []
  private var oldest = 0

  mutating func note(_ entry: SignedEntry) {
    let mark = Self.mark(entry)
    guard !marks.indices.contains(where: { marks[$0] == mark && entries[$0] == entry }) else {
      return
    }
    if marks.count < Self.limit {
      marks.append(mark)
      entries.append(entry)
    } else {
      marks[oldest] = mark
      entries[oldest] = entry
      oldest = (oldest + 1) % Self.limit
    }
  }

  /// Another entry under the same sequence of the same author.
  func contradicting(_ entry: SignedEntry) -> SignedEntry? {
    let mark = Self.mark(entry)
    for index in marks.indices where marks[index] == mark {
      let other = entries[index]
      if other.entry.author == entry.entry.author, other.entry.sequence == entry.entry.sequence,
        other != entry
      {
        return other
      }
    }
    return nil
  }

  private static func mark(_ entry: SignedEntry) -> UInt64 {
    entry.entry.author.key.prefix ^ entry.entry.sequence
  }
}
