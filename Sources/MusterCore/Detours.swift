import MusterBase
import MusterWire

/// A way to a member through a neighbour of both.
package struct Detour: Equatable, Sendable {
  let channel: ChannelID
  let relay: NodeID
  let target: NodeID

  package init(channel: ChannelID, relay: NodeID, target: NodeID) {
    self.channel = channel
    self.relay = relay
    self.target = target
  }
}

/// The ways through others that this node has used, each with a number that stands for it where an
/// address is asked for: so a link's path leads over a relay, or away from it, like over any other.
package struct Detours: Sendable {
  private var known = PeerTable<UInt64, Detour>()
  private var last: UInt64 = 0
  /// Two for each link; the oldest are forgotten, and made anew when they are used again.
  package static let limit = 2 * Limits.links

  package init() {}

  package subscript(address: Address) -> Detour? { address.detour.flatMap { known[$0] } }

  package mutating func address(of detour: Detour) -> Address {
    if let place = known.first(where: { $0.value == detour }) { return .detour(place.key) }
    last += 1
    known[last] = detour
    if known.count > Self.limit { known[known.keys[0]] = nil }
    return .detour(last)
  }
}

/// A member of this node's call to whom nothing gets through.
struct Missing: Sendable {
  /// When the next relay is tried.
  var nextAt: Instant
  var tried: [NodeID]
}
