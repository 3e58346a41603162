import MusterBase
import MusterWire

/// A way to a member through a neighbour of both.
package struct RelayedPath: Equatable, Sendable {
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
package struct RelayedPaths: Sendable {
  private var known = PeerTable<UInt64, (way: RelayedPath, usedAt: UInt64)>()
  private var last: UInt64 = 0
  /// Counts uses: the order in which they were is all that matters.
  private var uses: UInt64 = 0
  /// Two for each link; the one that was not used for longest is forgotten, and made anew when it
  /// is used again.
  package static let limit = 2 * Limits.links

  package init() {}

  package subscript(address: Address) -> RelayedPath? { address.relayed.flatMap { known[$0]?.way } }

  package mutating func address(of relayed: RelayedPath) -> Address {
    uses += 1
    if let index = known.first(where: { $0.value.way == relayed }) {
      known[index.key] = (relayed, uses)
      return .relayed(index.key)
    }
    last += 1
    known[last] = (relayed, uses)
    if known.count > Self.limit, let oldest = known.min(by: { $0.value.usedAt < $1.value.usedAt }) {
      known[oldest.key] = nil
    }
    return .relayed(last)
  }
}

/// A member of this node's call to whom nothing gets through.
struct UnreachablePeer: Sendable {
  /// When the next relay is tried.
  var nextAt: Instant
  var tried: [NodeID]
}
