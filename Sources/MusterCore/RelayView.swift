import MusterBase
import MusterLink
import MusterWire

/// One channel's call as the search for relays sees it: this node's links there, and the members of
/// the call.
struct RelayView {
  /// Another member of the call.
  struct Member {
    let id: NodeID
    /// The boot id that it announced last.
    let bootID: UInt64
    /// It has announced another run since its link came up.
    let hasRestarted: Bool
    /// No link is made to it for a while.
    let isRefused: Bool
    /// The last address at which it was reached directly, in this run or an earlier one.
    let lastDirectAddress: Address?
  }

  /// A link of this node in the channel.
  struct Link {
    let route: Route
    let roundTrip: Duration?
    let liveness: PathLiveness?
    let lastDirectAddress: Address?
    /// The announcement of its peer.
    let flags: MemberFlags
  }

  let own: NodeID
  let channel: ChannelID
  /// This node's neighbours that report a link with a member.
  let neighbours: (_ of: NodeID) -> [NodeID]
  var members: [Member] = []
  var links = PeerTable<NodeID, Link>()

  /// Neighbours of both that relay: first those that are heard, then those with little load, then
  /// the nearest.
  func relays(to member: Member, unmeasured: Duration, at now: Instant) -> [NodeID] {
    var usable: [(id: NodeID, rank: Int, roundTrip: Duration)] = []
    for neighbour in neighbours(member.id) {
      guard let link = links[neighbour], link.route.isDirect,
        !link.flags.contains(.declinesRelaying)
      else { continue }
      let lostAt = link.liveness?.lostAt(roundTrip: link.roundTrip ?? unmeasured)
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
