import MusterBase

/// The expected reachability of every pair of members, derived from the network and the rendezvous
/// servers alone, never from the state of nodes.
public struct ReachChecker: Equatable, Sendable {
  /// The topology that determines reachability.
  public struct Layout: Equatable, Sendable {
    /// The NAT type of each home network's router.
    public var kinds: [NATKind]
    /// The pairs of homes that are cut off from each other.
    public var cuts: [[Int]]
    /// The index of each member's home network; nil for an absent member.
    public var members: [Int?]
    /// The indices of the home networks with a running rendezvous server.
    public var rendezvous: [Int]

    /// Homes are indices into `kinds`; each cut is a pair of homes, lower index first.
    public init(kinds: [NATKind], cuts: [[Int]] = [], members: [Int?], rendezvous: [Int] = []) {
      self.kinds = kinds
      self.cuts = cuts
      self.members = members
      self.rendezvous = rendezvous
    }
  }

  private let layout: Layout

  /// The layout is fixed; every change of the network needs a new checker.
  public init(_ layout: Layout) { self.layout = layout }

  /// Whether simultaneous hole punching between two NAT types succeeds: unless one blocks UDP, both
  /// need endpoint-independent mapping (RFC 4787), or one needs endpoint-independent filtering.
  public static func canPunch(_ one: NATKind, _ other: NATKind) -> Bool {
    switch (one, other) {
    case (.blocked, _), (_, .blocked): false
    case (.none, _), (_, .none), (.full, _), (_, .full): true
    case (.preserving, .preserving): true
    case (.preserving, .random), (.random, .preserving), (.random, .random): false
    }
  }

  /// Whether a direct path exists between two members, discoverable or not.
  public func hasPath(_ one: Int, _ other: Int) -> Bool {
    guard one != other, let a = layout.members[one], let b = layout.members[other] else {
      return false
    }
    return a == b || isOpen(a, b)
  }

  /// Whether a direct path exists that both members can discover, on their local network or through
  /// a rendezvous server that both reach.
  public func isDirect(_ one: Int, _ other: Int) -> Bool {
    guard hasPath(one, other), let a = layout.members[one], let b = layout.members[other] else {
      return false
    }
    return a == b
      || layout.rendezvous.contains { ($0 == a || isOpen($0, a)) && ($0 == b || isOpen($0, b)) }
  }

  /// The members that can relay between two members because they have discoverable direct paths to
  /// both.
  public func relays(_ one: Int, _ other: Int) -> [Int] {
    layout.members.indices.filter { isDirect(one, $0) && isDirect($0, other) }
  }

  /// Whether two members must be linked, directly or through a relay.
  public func mustBeLinked(_ one: Int, _ other: Int) -> Bool {
    isDirect(one, other) || one != other && !relays(one, other).isEmpty
  }

  /// Whether two members may be linked over any path, direct or relayed. The path need not be
  /// discoverable, since candidates may date from before the last change.
  public func mayBeLinked(_ one: Int, _ other: Int) -> Bool {
    hasPath(one, other)
      || layout.members.indices.contains { mayRelay($0, between: one, and: other) }
  }

  /// Whether `relay` has direct paths to two different members.
  public func mayRelay(_ relay: Int, between one: Int, and other: Int) -> Bool {
    one != other && hasPath(one, relay) && hasPath(relay, other)
  }

  private func isOpen(_ one: Int, _ other: Int) -> Bool {
    Self.canPunch(layout.kinds[one], layout.kinds[other])
      && !layout.cuts.contains([min(one, other), max(one, other)])
  }
}
