import MusterBase
import MusterWire

/// Set reconciliation: finds, in a few messages, the entries that either of two documents lacks.
///
/// Entry ids are hashes, so they are spread evenly over a tree with 16 branches per level. Two
/// nodes compare sums of ids and descend into branches that differ, until a branch is small enough
/// to be listed.
extension Document {
  /// The number of id bits per tree level.
  private static let branchBits: UInt8 = 4
  /// The number of ids up to which a list costs little more than a fingerprint.
  private static let shortList = 4

  /// The result of comparing a neighbour's ranges with this document.
  struct Comparison: Equatable, Sendable {
    /// Entries that the neighbour lacks.
    var lacking: [SignedEntry] = []
    /// Ids of entries that this document lacks.
    var wanted: [UInt64] = []
    /// The ranges that the neighbour must compare in turn.
    var ranges: [RangeSummary] = []
  }

  /// The ranges sent first to a neighbour whose digest differs.
  var rootRanges: [RangeSummary] {
    count <= RangeSummary.idLimit
      ? [list(depth: 0, prefix: 0)] : children(depth: 0, prefix: 0)
  }

  func compare(_ theirs: [RangeSummary]) -> Comparison {
    var result = Comparison()
    var seen: [ClosedRange<UInt64>] = []
    for range in theirs where range.depth <= RangeSummary.depthLimit {
      let first = Self.masked(range.prefix, range.depth)
      let span = first...(first | Self.tail(range.depth))
      // An honest neighbour's ranges never overlap; overlapping ranges could each cost a pass over
      // the whole document.
      guard !seen.contains(where: { $0.overlaps(span) }) else { continue }
      seen.append(span)
      compare(range, &result)
    }
    return result
  }

  private func compare(_ range: RangeSummary, _ result: inout Comparison) {
    guard range.depth <= RangeSummary.depthLimit, range.depth % Self.branchBits == 0 else { return }
    let prefix = Self.masked(range.prefix, range.depth)
    let indices = indices(depth: range.depth, prefix: prefix)
    switch range.content {
    case .fingerprint(let theirs):
      guard fingerprint(indices) != theirs else { return }
      if indices.count <= RangeSummary.idLimit
        || range.depth + Self.branchBits > RangeSummary.depthLimit
      {
        result.ranges.append(list(depth: range.depth, prefix: prefix))
      } else {
        result.ranges += children(depth: range.depth, prefix: prefix)
      }
    case .ids(let theirs):
      let listed = theirs.sorted()
      func isListed(_ id: UInt64) -> Bool {
        let index = listed.partitionIndex { $0 >= id }
        return index < listed.count && listed[index] == id
      }
      for index in indices
      where result.lacking.count < Limits.outboxEntries && !isListed(ids[index].prefix) {
        result.lacking += entries(at: index)
      }
      result.wanted += theirs.filter { !contains($0) }
    }
  }

  private func children(depth: UInt8, prefix: UInt64) -> [RangeSummary] {
    let below = depth + Self.branchBits
    return (UInt64(0)..<16).map { branch in
      let child = prefix | branch << UInt64(64 - below)
      let indices = indices(depth: below, prefix: child)
      return indices.count <= Self.shortList
        ? list(depth: below, prefix: child)
        : RangeSummary(
          depth: below, prefix: child, content: .fingerprint(fingerprint(indices)))
    }
  }

  /// Lists a range, with at most `RangeSummary.idLimit` ids. Only crafted ids can make a range that
  /// is listed exceed this limit.
  private func list(depth: UInt8, prefix: UInt64) -> RangeSummary {
    let indices = indices(depth: depth, prefix: prefix)
    let listed = indices.prefix(RangeSummary.idLimit).map { ids[$0].prefix }
    return RangeSummary(depth: depth, prefix: prefix, content: .ids(listed))
  }

  private func indices(depth: UInt8, prefix: UInt64) -> Range<Int> {
    let first = ids.partitionIndex { $0.prefix >= prefix }
    let last = prefix | Self.tail(depth)
    return first..<max(first, ids.partitionIndex { $0.prefix > last })
  }

  private func fingerprint(_ indices: Range<Int>) -> [UInt8] {
    var sum = EntryID.zero
    for index in indices { sum = sum &+ ids[index] }
    return Array(sum.bytes.suffix(RangeSummary.fingerprintBytes))
  }

  private static func masked(_ prefix: UInt64, _ depth: UInt8) -> UInt64 { prefix & ~tail(depth) }

  /// A mask of the bits below the first `depth` bits.
  private static func tail(_ depth: UInt8) -> UInt64 {
    depth == 0 ? .max : (UInt64(1) << UInt64(64 - Int(min(depth, 63)))) &- 1
  }
}
