import MusterBase
import MusterWire

/// How many entries of a bounded table each principal and each author have, and whose entries give
/// way when the table is full.
///
/// A **principal** is someone whom an owner has let in: a member with a direct grant, or an invite
/// with all who came by it. Keys cost nothing, principals do. The table is divided max-min among
/// principals, and the share of each principal among its authors, who lose their oldest entries
/// first. The entries that remain are thus a function of the set of all entries: what is dropped
/// would be dropped from any larger set, too.
struct FairQuota: Sendable {
  private struct Share: Sendable {
    var count = 0
    /// The number of entries of each author.
    var authors = PeerTable<NodeID, Int>()
  }

  /// Whether space is shared; otherwise the oldest entry gives way, whoever signed it
  /// (`ChannelPolicy.dividesFairly`).
  private let isFair: Bool
  private var shares = PeerTable<NodeID, Share>()
  /// The principal of each author that has entries.
  private var principals = PeerTable<NodeID, NodeID>()

  init(isFair: Bool = true) { self.isFair = isFair }

  /// The authors that have entries, sorted by id.
  var authors: [NodeID] { principals.keys }

  /// The number of entries of an author.
  func count(of author: NodeID) -> Int {
    principals[author].flatMap { shares[$0]?.authors[author] } ?? 0
  }

  /// Counts an entry of an author; the author's existing entries move to `principal`.
  mutating func add(_ author: NodeID, of principal: NodeID) {
    move(author, to: principal)
    add(1, author, of: principal)
  }

  /// Counts an entry of an author less.
  mutating func remove(_ author: NodeID) {
    if let principal = principals[author] { add(-1, author, of: principal) }
  }

  /// Moves the entries of an author to the share of another principal.
  mutating func move(_ author: NodeID, to principal: NodeID) {
    guard let former = principals[author], former != principal else { return }
    let count = count(of: author)
    add(-count, author, of: former)
    add(count, author, of: principal)
  }

  private mutating func add(_ count: Int, _ author: NodeID, of principal: NodeID) {
    if shares.index(of: principal) == nil { shares[principal] = Share() }
    let left = shares.update(principal) { share -> (own: Int, all: Int) in
      let own = (share.authors[author] ?? 0) + count
      share.count += count
      share.authors[author] = own == 0 ? nil : own
      return (own, share.count)
    }
    principals[author] = left?.own == 0 ? nil : principal
    if left?.all == 0 { shares[principal] = nil }
  }

  /// The authors among whom the oldest entry gives way, sorted by id: those with the most entries
  /// of one of the principals with the most entries; or all, if nobody has more than one.
  ///
  /// Of principals with equally many entries, the one with the lowest id gives way. Their ages
  /// would not do: an old entry of another author would let a principal give way that keeps its
  /// entries without it, so that the order of arrival would matter.
  var evictionCandidates: [NodeID] {
    guard isFair, let most = shares.max(by: { $0.value.count < $1.value.count })?.value.count,
      most > 1,
      let share = shares.first(where: { $0.value.count == most })?.value
    else { return principals.keys }
    let ofOne = share.authors.reduce(0) { max($0, $1.value) }
    return share.authors.compactMap { $0.value == ofOne ? $0.key : nil }
  }
}
