import MusterBase

/// Divides what an uplink carries among the receivers of this node's video.
///
/// The smallest layer for everyone comes first. The rest goes to those who show the most of this
/// node, as the size that they request shows: to a screen before cameras, and to the receivers of a
/// larger layer before those of a smaller one. Equals get the same.
public enum UplinkPlan {
  /// How much a receiver's video matters. The size that it requests follows from what it pins,
  /// and from who speaks.
  public struct Rank: Comparable, Sendable {
    /// Whether it receives a screen, whose text is useless when small.
    public var hasScreen: Bool
    /// The pixels of the largest layer that it requests.
    public var pixels: Int

    public init(hasScreen: Bool, pixels: Int) {
      self.hasScreen = hasScreen
      self.pixels = pixels
    }

    public static func < (a: Rank, b: Rank) -> Bool {
      a.hasScreen != b.hasScreen ? b.hasScreen : a.pixels < b.pixels
    }
  }

  /// A receiver and the bandwidth of its video in kbit/s of IP packets.
  public struct Receiver: Equatable, Sendable {
    public var rank: Rank
    /// The least with which it gets the smallest layer of all that it requests.
    public var least: Int
    /// The most that it could use.
    public var most: Int

    public init(rank: Rank, least: Int, most: Int) {
      self.rank = rank
      self.least = min(least, most)
      self.most = most
    }
  }

  /// The share of each receiver in kbit/s. The shares amount to the budget at most, and to all of
  /// it unless everyone gets the most.
  public static func shares(of budget: Int, among receivers: [Receiver]) -> [Int] {
    var shares = divide(max(budget, 0), among: receivers.map(\.least))
    var ranks = receivers.map(\.rank).sorted(by: >)[...]
    while let rank = ranks.first {
      ranks = ranks.drop { $0 == rank }
      var equals = receivers.indices.filter { receivers[$0].rank == rank }
      var amount = equals.reduce(max(budget, 0) - shares.reduce(0, +)) { $0 + shares[$1] }
      while true {
        let parts = divide(amount, among: equals.map { receivers[$0].most })
        let kept = zip(equals, parts).filter { shares[$0] > $1 }.map(\.0)
        guard !kept.isEmpty else {
          for (index, part) in zip(equals, parts) { shares[index] = part }
          break
        }
        // One whose smallest layer alone takes more than that keeps what it has.
        amount -= kept.reduce(0) { $0 + shares[$1] }
        equals.removeAll(where: kept.contains)
      }
    }
    return shares
  }

  /// Divides an amount equally, as far as each part's limit allows ("max-min fairness").
  private static func divide(_ amount: Int, among limits: [Int]) -> [Int] {
    var parts = limits
    var left = amount
    for (position, index) in limits.indices.sorted(by: { (limits[$0], $0) < (limits[$1], $1) })
      .enumerated()
    {
      parts[index] = min(limits[index], left / (limits.count - position))
      left -= parts[index]
    }
    return parts
  }
}
