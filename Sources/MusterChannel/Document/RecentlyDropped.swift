import MusterBase
import MusterWire

/// A buffer of recently dropped entries, for the detection of equivocation.
///
/// Without this buffer, a node that has a newer entry of an author would drop both conflicting
/// entries as outdated, and would never agree with other nodes about the author.
struct RecentlyDropped: Sendable {
  /// The capacity: the number of entries that may arrive between the two proofs of an equivocation,
  /// which are sent one after the other.
  static let limit = 256

  /// The XOR of author prefix and sequence number for each of `entries`, for a fast search.
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

  /// A different entry with the same author and sequence number; nil if the buffer has none.
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
