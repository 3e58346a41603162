import MusterBase
import MusterCore

/// Checks the paths between hosts that always reach each other: while their network does not
/// change, they keep to one direct path.
public struct PathSteadiness: Sendable {
  /// The route of a link.
  public enum Route: Equatable, Sendable {
    case direct(Address)
    case relayed
  }

  /// The time after a change within which paths may change: the announcements of a new address are
  /// lost now and then, and the next follow seconds later.
  public static let restlessTime = Duration.seconds(3)

  private struct Pair: Sendable {
    var route: Route?
    var changes = 0
  }

  private let count: Int
  private var pairs: [Pair]
  private var changedAt = Instant.zero

  public init(nodes count: Int) {
    self.count = count
    pairs = Array(repeating: Pair(), count: count * count)
  }

  /// Records a change of the network or of a process.
  public mutating func changed(at now: Instant) {
    changedAt = now
    for index in pairs.indices { pairs[index] = Pair() }
  }

  /// Records the route of a link; nil without a link. Returns the fault, if this is one change too
  /// many.
  public mutating func seen(
    _ route: Route?, from one: Int, to other: Int, at now: Instant
  ) -> String? {
    guard now - changedAt >= Self.restlessTime else { return nil }
    let index = one * count + other
    let former = pairs[index].route
    pairs[index].route = route
    guard let former, let route, former != route else { return nil }
    guard route != .relayed else { return "relayed, although a direct path works" }
    pairs[index].changes += 1
    return pairs[index].changes > 1 ? "a second path in a network that does not change" : nil
  }
}

extension PeerStatistics {
  /// The route as `PathSteadiness` takes it; nil if there is neither an address nor a relay.
  var route: PathSteadiness.Route? {
    via != nil ? .relayed : address.map { .direct($0) }
  }
}
