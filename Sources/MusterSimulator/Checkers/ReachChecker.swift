import MusterBase

/// Who can reach whom: worked out from where everybody is and what the routers are, never from what
/// nodes say.
public struct ReachChecker: Equatable, Sendable {
  /// What counts of the network.
  public struct Layout: Equatable, Sendable {
    public var kinds: [NATKind]
    /// Pairs of homes that are cut apart.
    public var cuts: [[Int]]
    /// By member, its home; nil for one that is not there.
    public var members: [Int?]
    /// The homes of the rendezvous that are up.
    public var rendezvous: [Int]

    public init(kinds: [NATKind], cuts: [[Int]] = [], members: [Int?], rendezvous: [Int] = []) {
      self.kinds = kinds
      self.cuts = cuts
      self.members = members
      self.rendezvous = rendezvous
    }
  }

  private let layout: Layout

  public init(_ layout: Layout) { self.layout = layout }

  /// Whether two who write to each other get through: one has to have a port outside that is the
  /// same for everyone, and the other a port that can be known, or a router that lets anyone in.
  public static func canPunch(_ one: NATKind, _ other: NATKind) -> Bool {
    switch (one, other) {
    case (.blocked, _), (_, .blocked): false
    case (.none, _), (_, .none), (.full, _), (_, .full): true
    case (.preserving, .preserving): true
    case (.preserving, .random), (.random, .preserving), (.random, .random): false
    }
  }

  /// Whether there is any way of their own at all.
  public func hasPath(_ one: Int, _ other: Int) -> Bool {
    guard one != other, let a = layout.members[one], let b = layout.members[other] else {
      return false
    }
    return a == b || isOpen(a, b)
  }

  /// Whether there is a way of their own, and they can hear of each other: on one network, or from
  /// a rendezvous that both reach.
  public func isDirect(_ one: Int, _ other: Int) -> Bool {
    guard hasPath(one, other), let a = layout.members[one], let b = layout.members[other] else {
      return false
    }
    return a == b
      || layout.rendezvous.contains { ($0 == a || isOpen($0, a)) && ($0 == b || isOpen($0, b)) }
  }

  /// Those through whom two must be able to be linked.
  public func relays(_ one: Int, _ other: Int) -> [Int] {
    layout.members.indices.filter { isDirect(one, $0) && isDirect($0, other) }
  }

  /// Whether two must be linked, directly or through somebody.
  public func mustBeLinked(_ one: Int, _ other: Int) -> Bool {
    isDirect(one, other) || one != other && !relays(one, other).isEmpty
  }

  /// Whether two may be linked, even if nobody could ask for it: news of somebody may be older than
  /// the last change.
  public func mayBeLinked(_ one: Int, _ other: Int) -> Bool {
    hasPath(one, other)
      || layout.members.indices.contains { mayRelay($0, between: one, and: other) }
  }

  public func mayRelay(_ relay: Int, between one: Int, and other: Int) -> Bool {
    one != other && hasPath(one, relay) && hasPath(relay, other)
  }

  private func isOpen(_ one: Int, _ other: Int) -> Bool {
    Self.canPunch(layout.kinds[one], layout.kinds[other])
      && !layout.cuts.contains([min(one, other), max(one, other)])
  }
}
