import MusterBase
import MusterLink
import MusterWire

/// The state of one channel's call that the search for relays needs: this node's links in the
/// channel, and the members of the call.
struct RelayView {
  /// Another member of the call.
  struct Member {
    let id: NodeID
    /// The boot id in the member's newest presence.
    let bootID: UInt64
    /// Whether the member's newest presence is of another run than its link.
    let hasRestarted: Bool
    /// Whether a refusal prevents links with the member.
    let isRefused: Bool
    /// The last address at which the member was reached directly, in this run or an earlier run;
    /// nil if there is none.
    let lastDirectAddress: Address?
  }

  /// A link of this node in the channel.
  struct Link {
    let route: Route
    let roundTrip: Duration?
    let liveness: PathLiveness?
    let lastDirectAddress: Address?
    /// The flags in the peer's presence.
    let flags: MemberFlags
  }

  let own: NodeID
  let channel: ChannelID
  /// This node's neighbours that report a link with a member.
  let neighbours: (_ of: NodeID) -> [NodeID]
  var members: [Member] = []
  var links = PeerTable<NodeID, Link>()

  /// The neighbours of both this node and `member` that offer to relay, best first: live paths
  /// before lost paths, then low load before high load, then by ascending round trip.
  func relays(to member: Member, at now: Instant) -> [NodeID] {
    var usable: [(id: NodeID, rank: Int, roundTrip: Duration)] = []
    for neighbour in neighbours(member.id) {
      guard let link = links[neighbour], link.route.isDirect,
        !link.flags.contains(.declinesRelaying)
      else { continue }
      let lostAt = link.liveness?.lostAt(roundTrip: link.roundTrip)
      let isLost = lostAt.map { $0 <= now } ?? true
      let rank = (isLost ? 2 : 0) + (link.flags.contains(.relaysMuch) ? 1 : 0)
      usable.append((neighbour, rank, link.roundTrip ?? .seconds(1)))
    }
    usable.sort { a, b in
      if a.rank != b.rank { return a.rank < b.rank }
      return a.roundTrip == b.roundTrip ? a.id < b.id : a.roundTrip < b.roundTrip
    }
    return usable.map(\.id)
  }
}
